// One colour for each category and each part of memory, on all pages.

/** For each colour, the categories of variables that have it. */
const COLOURS = [
  'variable', 'constant', 'vertexCode', 'vertexInstanceState', 'internalExchangeCode', 'controlCode',
  'message', 'copyDescriptor', 'outputEdge', 'rearrangement', 'multiple', 'stack', 'vertexFieldData',
  'vectorListDescriptor', 'globalExchangeCode', 'hostExchangeCode', 'controlTable', 'controlId',
  'instrumentationResults', 'sharedCodeStorage', 'sharedDataStorage', 'sharedStructureState', 'globalMessage',
  'hostMessage', 'globalExchangePacketHeader', 'hostExchangePacketHeader', 'dwarf',
];

/** @param {string} category */
const lookOf = (category) => {
  const place = COLOURS.indexOf(category);
  return place < 0 ? 'tile-others' : `${lookAt(place)}${place >= 14 ? ' second' : ''}`;
};

/** The colour of the entry of a list with this index; 14 colours repeat. @param {number} place */
const lookAt = (place) => `tile-${place % 14}`;

/** The colour of a cell that names a category. @param {Column} column @param {string} cell */
const lookOfCategory = (column, cell) => column.name === 'Category' ? lookOf(cell) : '';

/** The kinds of contents of a stage: the name of the report's field, the CSS class, and the name for people. @type {[string, string, string][]} */
const PARTS = [
  ['variables', 'tile-0', 'Variables'], ['vertex_code', 'tile-2', 'Vertex code'], ['vertex_state', 'tile-3', 'Vertex state'],
  ['exchange_code', 'tile-4', 'Exchange code'], ['control_code', 'tile-5', 'Control code'],
  ['host_exchange_code', 'tile-1 second', 'Host exchange code'], ['global_exchange_code', 'tile-0 second', 'Global exchange code'],
  ['overhead', 'overhead', 'Overhead'], ['gaps', 'gaps', 'Fragmentation'],
  ['stash', 'stash', 'Stash'], ['accumulators', 'accumulators', 'Accumulators'],
  ['waiting', 'waiting', 'Transfer buffers'], ['passing', 'passing', 'Forwarded tensors'],
  ['state', 'state', 'Optimizer state'],
];

/** @param {any} parts */
const partsOf = (parts) => PARTS.filter(([key]) => parts[key] > 0)
  .map(([key, look, name]) => ({ look, name, bytes: parts[key] }));

/** Adds a legend of the kinds of contents that are not 0 in some entry. @param {Element} parent @param {any[]} all */
const addPartsLegend = (parent, all) => addLegend(parent,
  PARTS.filter(([key]) => all.some((own) => own[key] > 0)).map(([, look, name]) => [look, name]));
