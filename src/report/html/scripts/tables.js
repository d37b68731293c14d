// Tables that the reader can sort, filter, and copy into a spreadsheet.

/** @typedef {{name: string, kind: string, at: string}} Column */
/** @typedef {{at: string, cells: any[]}} Row */
/** @typedef {{id?: string, choose?: (row: Row, place: number) => void, isChosen?: (row: Row, place: number) => boolean,
 *   look?: (column: Column, cell: any, row: Row) => string, most?: number, isTried?: boolean,
 *   drawn?: (own: Element, column: Column, row: Row) => void}} Manner `look` is the colour of a cell,
 *   `drawn` adds a drawing to it; `isTried` tables have numbers of a split that only its own run would report */

const WITH_NUMBERS = ['count', 'bytes', 'free', 'change', 'share', 'percent'];

/** The text of a cell for people. @param {string} kind @param {any} cell */
const shownCell = (kind, cell) => {
  if (kind === 'layer') return short(layerName(cell));
  if (cell?.layer !== undefined) return short(layerName(cell.layer));
  if (cell === null || cell === undefined) return '\u2013';
  if (kind === 'share') return ofLimit(cell[0], cell[1]);
  if (kind === 'change') return changed(cell);
  if (Array.isArray(cell)) return Array.isArray(cell[0]) ? stageList(cell) : layerList(cell);
  if (typeof cell === 'boolean') return cell ? 'yes' : 'no';
  return WITH_NUMBERS.includes(kind) ? grouped(cell) : short(String(cell));
};

/** The value that a cell is sorted by. @param {string} kind @param {any} cell */
const orderOf = (kind, cell) => {
  if (cell === null || cell === undefined) return -Infinity;
  if (kind === 'share') return Number(cell[0]) / (Number(cell[1]) || 1);
  return WITH_NUMBERS.includes(kind) ? parseFloat(cell) : shownCell(kind, cell);
};

/** A cell for a spreadsheet: no formula, one line. @param {string} kind @param {any} cell */
const plainCell = (kind, cell) => {
  const text = kind === 'share' || Array.isArray(cell) ? shownCell(kind, cell) : String(cell ?? '');
  const line = printable(text).replace(/[\t\n]/g, ' ');
  return /^[=+@]|^-(?!\d)/.test(line) ? `'${line}` : line;
};

/** The JSON pointer of a cell's value in the report. @param {Column} column @param {Row} row */
const pointerOf = (column, row) => column.at.includes('{}') ? column.at.replace('{}', row.at)
  : column.at && row.at.startsWith('/') ? row.at + column.at : '';

/** Makes the columns of a table. @param {([string, string, string?] | false | null | undefined)[]} all name, kind, place */
const columnsOf = (all) => all.flatMap((own) => own ? [{ name: own[0], kind: own[1], at: own[2] ?? '' }] : []);

/** Makes a row for each entry of a list of the report. The columns have the places of their cells in an
 * entry. @param {string} pointer @param {Column[]} columns
 * @param {(own: any) => boolean} [isMeant] @returns {Row[]} */
const rowsAt = (pointer, columns, isMeant = () => true) => /** @type {any[]} */ (at(pointer) ?? []).flatMap((own, place) =>
  isMeant(own) ? [{ at: `${pointer}/${place}`, cells: columns.map((column) => at(column.at, own)) }] : []);

/** Adds a table. A wide table scrolls sideways, and shows that it does.
 * @param {Element} parent @param {string} name @param {Column[]} columns @param {Row[]} rows
 * @param {Manner} [manner] */
const addTable = (parent, name, columns, rows, manner = {}) => {
  const box = add(parent, 'div', '', 'table-box');
  let order = { column: -1, isDown: false }, filter = '', isWhole = false;
  let shown = rows;
  const most = manner.most ?? 60;
  if (rows.length > 12) {
    const tools = add(box, 'div', '', 'tools');
    const field = addField(tools, 'Filter', 'search', '', () => { filter = field.value.toLowerCase(); fill(); }, { 'aria-label': `Filter ${name}` });
    set(addCopy(tools, tsv, 'Copy as TSV'), { 'aria-label': `Copy as TSV: ${name}` });
  }
  const scroll = set(add(box, 'div', '', 'scroll'), { tabindex: 0, role: 'group', 'aria-label': name });
  const table = addAs(scroll, 'table', manner.id ?? '');
  add(table, 'caption', name, 'unseen');
  const line = add(add(table, 'thead'), 'tr');
  const heads = columns.map(({ name: title, kind }, place) => {
    const isNumber = WITH_NUMBERS.includes(kind);
    const head = set(add(line, 'th', '', isNumber ? 'n' : ''), { scope: 'col' });
    addButton(head, title, () => {
      order = { column: place, isDown: order.column === place ? !order.isDown : isNumber };
      fill();
    }, '', 'sort');
    return head;
  });
  const body = add(table, 'tbody');
  const more = add(box, 'p', '', 'soft');
  /** Functions that mark the chosen row among the rows that are shown. @type {(() => void)[]} */
  let marks = [];

  /** Writes all rows that pass the filter, for a spreadsheet. */
  function tsv() {
    const lines = shown.map((row) => row.cells.map((cell, place) => plainCell(columns[place].kind, cell)));
    return [columns.map((column) => column.name), ...lines].map((line) => line.join('\t')).join('\n') + '\n';
  }

  /** @param {Row} row */
  const addRow = (row) => {
    const line = add(body, 'tr');
    const place = rows.indexOf(row);
    if (manner.isChosen) marks.push(() => line.classList.toggle('is-chosen', manner.isChosen?.(row, place)));
    row.cells.forEach((cell, number) => {
      const column = columns[number];
      const { kind } = column;
      const isNumber = WITH_NUMBERS.includes(kind);
      const isLink = number === 0 && manner.choose;
      const isOfLayers = !isLink && kind !== 'share' && Array.isArray(cell);
      const own = add(line, number ? 'td' : 'th', '', isNumber ? 'n' : 'name');
      if (!number) set(own, { scope: 'row' });
      if (kind === 'name' || kind === 'layers') own.classList.add('wrap');
      if (kind === 'free' && Number(cell) < 0) own.classList.add('bad');
      const look = manner.look?.(column, cell, row);
      if (look) addSwatch(own, look);
      const target = isLink ? addButton(own, shownCell(kind, cell), () => manner.choose?.(row, place), '', 'link') : own;
      if (isOfLayers) addLayersOf(own, cell); else if (!isLink) own.append(printable(shownCell(kind, cell)));
      manner.drawn?.(own, column, row);
      const pointer = isNumber && kind !== 'share' && cell !== null && cell !== undefined ? pointerOf(column, row) : '';
      if (pointer && manner.isTried) target.dataset.now = pointer;
      // Parts of 0 bytes are left out of the report.
      else if (pointer && at(pointer) !== undefined) target.dataset.json = pointer;
    });
  };

  /** Writes a stage, or all stages of a split, and marks the stage with the chosen layer. @param {Element} own @param {any[]} cell */
  const addLayersOf = (own, cell) => {
    const isSplit = Array.isArray(cell[0]);
    const stages = isSplit ? cell : [cell];
    stages.forEach((layers, stage) => {
      if (isSplit) own.append(stage ? ' | ' : '[ ');
      const part = add(own, 'span', layerList(layers));
      marks.push(() => part.classList.toggle('has-layer', hasChosenLayer(layers)));
    });
    if (isSplit) own.append(' ]');
  };

  const mark = () => marks.forEach((show) => show());
  const fill = () => {
    const { column, isDown } = order;
    shown = rows.filter((row) => !filter
      || row.cells.some((cell, place) => shownCell(columns[place].kind, cell).toLowerCase().includes(filter)));
    if (column >= 0) {
      shown.sort((a, b) => {
        const [one, other] = [a, b].map((row) => orderOf(columns[column].kind, row.cells[column]));
        return one === other ? 0 : (one < other) === isDown ? 1 : -1;
      });
      heads.forEach((head) => head.removeAttribute('aria-sort'));
      set(heads[column], { 'aria-sort': isDown ? 'descending' : 'ascending' });
    }
    body.replaceChildren();
    marks = [];
    (isWhole ? shown : shown.slice(0, most)).forEach(addRow);
    mark();
    more.textContent = shown.length ? '' : rows.length ? 'No row has that.' : 'Nothing.';
    if (!isWhole && shown.length > most) addButton(more, `Show all ${grouped(shown.length)} rows`, () => { isWhole = true; fill(); });
  };
  follow(['ipu', 'step', 'layer', 'variable'], mark, scroll);
  fill();
  edgeOf(scroll);
  return { set: (/** @type {Row[]} */ next) => { rows = next; fill(); } };
};

/** Marks the sides to which a table can be scrolled further. @param {HTMLElement} scroll */
const edgeOf = (scroll) => {
  const show = () => {
    const rest = scroll.scrollWidth - scroll.clientWidth - scroll.scrollLeft;
    scroll.classList.toggle('goes-right', rest > 2);
    scroll.classList.toggle('goes-left', scroll.scrollLeft > 2);
  };
  scroll.addEventListener('scroll', show, { passive: true });
  onResize(scroll, show);
  requestAnimationFrame(show);
};

/** The tables of a section of the report. @param {Element} parent @param {string} id
 * @param {string[]} [only] names of columns, in order; an empty name stands for all others @param {Manner} [manner] */
const addTablesOf = (parent, id, only = [''], manner) => {
  const section = sectionOf(id);
  for (const { columns, rows } of (section?.blocks ?? []).flatMap((own) => 'table' in own ? [own.table] : [])) {
    const all = [...columns.keys()].filter((place) => isTelling(rows, place));
    const places = only.flatMap((name) => all.filter((place) => name ? columns[place].name === name : !only.includes(columns[place].name)));
    addTable(parent, section?.title ?? '', places.map((place) => columns[place]),
      rows.map((row) => ({ at: row.at, cells: places.map((place) => row.cells[place]) })), manner);
  }
};

/** Does a column tell anything? Not if all its cells are empty, or all are yes. @param {Row[]} rows @param {number} place */
const isTelling = (rows, place) => rows.some(({ cells }) => cells[place] !== null && cells[place] !== undefined)
  && rows.some(({ cells }) => cells[place] !== true);

/** Adds a table of a list of the report. @param {Element} parent @param {string} name
 * @param {string} pointer @param {Parameters<columnsOf>[0]} columns @param {Manner} [manner]
 * @param {(own: any) => boolean} [isMeant] */
const addTableAt = (parent, name, pointer, columns, manner, isMeant) => {
  const given = columnsOf(columns);
  const rows = rowsAt(pointer, given, isMeant);
  const all = given.filter((_, place) => isTelling(rows, place));
  if (rows.length) addTable(parent, name, all, rowsAt(pointer, all, isMeant), manner);
};
