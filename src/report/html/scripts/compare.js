// Opens reports in the page, and compares two of them. No file leaves the browser.

/** The earlier report that the shown report is compared with, if any. @type {?Json.Report} */
let earlier = null;

/** @param {string} text @returns {Json.Report} */
const readReport = (text) => {
  const own = parsed(text);
  if (own?.format !== 'popliner-report') throw new Error('it is not a report of --export-json');
  if (own.version !== 1) throw new Error(`its version is ${own.version}, and this page reads version 1`);
  return own;
};

/** Opens one report, or two to compare: the first is the earlier one. @param {Iterable<File>} files */
const openFiles = async (files) => {
  const said = byId('opened');
  const all = [];
  for (const file of [...files].slice(0, 2)) {
    try {
      all.push({ own: readReport(await file.text()), name: file.name });
    } catch (error) {
      said.textContent = printable(`${file.name} cannot be shown: ${error instanceof Error ? error.message : error}.`);
      return;
    }
  }
  const next = all.pop();
  if (!next) return;
  earlier = all[0]?.own ?? null;
  show(next.own);
  byId('opened').textContent = printable(`This is ${next.name}${earlier ? `, compared with ${all[0].name}` : ''}.`);
};

/** Adds the fields in which the reader chooses reports. @param {HTMLElement} parent */
const addOpener = (parent) => {
  const field = addField(parent, 'Open a report of --export-json, or two to compare:', 'file', 'open', () => openFiles(field.files ?? []),
    { multiple: '', accept: '.json,application/json' });
  addAs(parent, 'p', 'opened', '', 'soft').setAttribute('role', 'status');
};

// The reader can drop reports anywhere on the page.
addEventListener('dragover', (event) => event.preventDefault());
addEventListener('drop', (event) => {
  event.preventDefault();
  openFiles(event.dataTransfer?.files ?? []);
});

/** Adds a table of the numbers that `read` returns for both reports, matched by their names. @param {HTMLElement} parent @param {string} name
 * @param {(own: Json.Report) => [string, any][]} read */
const addBoth = (parent, name, read) => {
  const [before, after] = [earlier ?? report, report].map((own) => new Map(read(own).filter(([, value]) => typeof value === 'number')));
  const rows = [...new Set([...before.keys(), ...after.keys()])].map((key) => {
    const [one, other] = [before.get(key) ?? null, after.get(key) ?? null];
    return { at: '', cells: [key, one, other, one === null || other === null ? null : other - one] };
  });
  if (rows.length) addTable(parent, name, columnsOf([[name, 'text'], ['Earlier', 'count'], ['Now', 'count'], ['Change', 'change']]), rows);
};

/** Builds the view of the differences between the two reports. @param {HTMLElement} parent */
const buildComparison = (parent) => {
  const part = addPart(parent, 'comparison', 'What moved');
  const [before, after] = [earlier ?? report, report].map((own) => short(own.provenance.files.profile));
  add(part, 'p', `${before} before, ${after} now.`, 'name');
  addBoth(part, 'Figure', (own) => [
    ['Stages', stagesOf(own).length], ['Peak memory of any stage, bytes', Math.max(...stagesOf(own).map((one) => one.tile.bytes), 0)],
    ['Limit, bytes', own.memory.limit], ['Bytes over all cuts', (own.cuts ?? []).reduce((sum, cut) => sum + cut.bytes, 0)],
    ['Cycles of a step', own.step?.cycles],
    ['Peak of the whole model on its fullest tile, bytes', own.liveness?.fullest_tile_curve.peak.bytes],
  ]);
  addBoth(part, 'Stage', (own) => stagesOf(own).map((one) => [`IPU ${one.ipu}`, one.tile.bytes]));
  addBoth(part, 'Layer', (own) => own.layers.map((one) => [one.name ?? 'In', one.total]));
  addBoth(part, 'Category', (own) => own.memory.categories.map((one) => [one.name, one.all_tiles]));
};
