// Tables: sorted by a press on a heading, filtered, copied for a spreadsheet.

/** @typedef {{name: string, kind: string, at: string}} Column */
/** @typedef {{at: string, cells: any[]}} Row */
/** @typedef {{id?: string, choose?: (row: Row, place: number) => void, isChosen?: (row: Row, place: number) => boolean,
 *   look?: (column: Column, cell: any, row: Row) => string, most?: number, drawn?: (own: Element, column: Column, row: Row) => void}} Manner
 *   `look` is the colour of what a cell names, `drawn` draws more in it */

const WITH_NUMBERS = ['count', 'bytes', 'free', 'change', 'share', 'percent'];

/** A cell as people read it. @param {string} kind @param {any} cell */
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

/** By what a cell is sorted. @param {string} kind @param {any} cell */
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

/** Where the number of a cell is in the report. @param {Column} column @param {Row} row */
const pointerOf = (column, row) => column.at.includes('{}') ? column.at.replace('{}', row.at)
  : column.at && row.at.startsWith('/') ? row.at + column.at : '';

/** Columns of a table that is made here. @param {[string, string, string?][]} all name, kind, place */
const columnsOf = (all) => all.map(([name, kind, place]) => ({ name, kind, at: place ?? '' }));

/** Rows with the entries of a list of the report, by columns that say where in an entry
 * their cells are. @param {string} pointer @param {Column[]} columns
 * @param {(own: any) => boolean} [isMeant] @returns {Row[]} */
const rowsAt = (pointer, columns, isMeant = () => true) => {
  const all = /** @type {any[]} */ (at(pointer) ?? []);
  const rows = all.map((own, place) => ({ own, at: `${pointer}/${place}`, cells: columns.map((column) => at(column.at, own)) }));
  return rows.filter((row) => isMeant(row.own));
};

/** A table that goes sideways where it is wide, and says so.
 * @param {Element} parent @param {string} name @param {Column[]} columns @param {Row[]} rows
 * @param {Manner} [manner] */
const addTable = (parent, name, columns, rows, manner = {}) => {
  const box = add(parent, 'div', '', 'table-box');
  let sorted = { column: -1, isDown: false }, filter = '', isWhole = false;
  let shown = rows;
  const most = manner.most ?? 60;
  if (rows.length > 12) {
    const tools = add(box, 'div', '', 'tools');
    const field = addField(tools, 'Filter', 'search', '');
    field.setAttribute('aria-label', `Filter ${name}`);
    field.addEventListener('input', () => { filter = field.value.toLowerCase(); fill(); });
    addCopy(tools, tsv, 'Copy as TSV').setAttribute('aria-label', `Copy as TSV: ${name}`);
  }
  const scroll = add(box, 'div', '', 'scroll');
  scroll.tabIndex = 0;
  scroll.setAttribute('role', 'group');
  scroll.setAttribute('aria-label', name);
  const table = add(scroll, 'table');
  if (manner.id) table.id = manner.id;
  add(table, 'caption', name, 'unseen');
  const heads = add(add(table, 'thead'), 'tr');
  columns.forEach((column, place) => {
    const head = add(heads, 'th', '', WITH_NUMBERS.includes(column.kind) ? 'n' : '');
    head.scope = 'col';
    const button = addButton(head, column.name, () => {
      const isNumber = WITH_NUMBERS.includes(column.kind);
      sorted = { column: place, isDown: sorted.column === place ? !sorted.isDown : isNumber };
      fill();
    });
    button.className = 'sort';
  });
  const body = add(table, 'tbody');
  const more = add(box, 'p', '', 'soft');
  /** What marks what is chosen, in the rows that are shown. @type {(() => void)[]} */
  let marks = [];

  /** All rows that the filter leaves, as a spreadsheet takes them. */
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
      const isNumber = WITH_NUMBERS.includes(column.kind);
      const isLink = number === 0 && manner.choose;
      const isOfLayers = !isLink && column.kind !== 'share' && Array.isArray(cell);
      const own = add(line, number ? 'td' : 'th', isLink || isOfLayers ? '' : shownCell(column.kind, cell), isNumber ? 'n' : 'name');
      if (isOfLayers) addLayersOf(own, cell);
      if (!number) own.setAttribute('scope', 'row');
      if (column.kind === 'name' || column.kind === 'layers' || column.kind === 'wrap') own.classList.add('wrap');
      if (column.kind === 'free' && Number(cell) < 0) own.classList.add('bad');
      const look = manner.look?.(column, cell, row);
      if (look) own.prepend(swatchOf(look));
      manner.drawn?.(own, column, row);
      const target = isLink ? addButton(own, shownCell(column.kind, cell), () => manner.choose?.(row, place)) : own;
      if (isLink) target.className = 'link';
      const pointer = isNumber && column.kind !== 'share' && cell !== null && cell !== undefined ? pointerOf(column, row) : '';
      // Parts of 0 bytes are left out of the report.
      if (pointer && at(pointer) !== undefined) target.dataset.json = pointer;
    });
  };

  /** A stage, or all of a split; that with the chosen layer is marked. @param {Element} own @param {any[]} cell */
  const addLayersOf = (own, cell) => {
    const stages = Array.isArray(cell[0]) ? cell : [cell];
    stages.forEach((layers, stage) => {
      if (stage) own.append(isShort(stages) ? ' | ' : ', ');
      const part = add(own, 'span', isShort(stages) ? layerList(layers) : String(layers.length));
      marks.push(() => part.classList.toggle('has-layer', hasChosenLayer(layers)));
    });
    if (!isShort(stages)) own.append(' positions');
  };

  /** @param {string} look */
  const swatchOf = (look) => {
    const holder = document.createElement('span');
    addSwatch(holder, look);
    return holder;
  };

  const mark = () => marks.forEach((show) => show());
  const fill = () => {
    shown = rows.filter((row) => !filter
      || row.cells.some((cell, place) => shownCell(columns[place].kind, cell).toLowerCase().includes(filter)));
    if (sorted.column >= 0) {
      const { kind } = columns[sorted.column];
      const sign = sorted.isDown ? -1 : 1;
      shown = [...shown].sort((a, b) => {
        const [one, other] = [a, b].map((row) => orderOf(kind, row.cells[sorted.column]));
        return one === other ? 0 : (one < other ? -sign : sign);
      });
    }
    heads.querySelectorAll('th').forEach((head, place) => {
      if (place === sorted.column) head.setAttribute('aria-sort', sorted.isDown ? 'descending' : 'ascending');
      else head.removeAttribute('aria-sort');
    });
    body.replaceChildren();
    marks = [];
    (isWhole ? shown : shown.slice(0, most)).forEach(addRow);
    mark();
    more.replaceChildren();
    if (!isWhole && shown.length > most) {
      addButton(more, `Show all ${grouped(shown.length)} rows`, () => { isWhole = true; fill(); });
    } else if (!shown.length) more.textContent = rows.length ? 'No row has that.' : 'Nothing.';
    more.hidden = !more.hasChildNodes();
  };
  fill();
  onChoice(['ipu', 'step', 'layer', 'variable'], mark, scroll);
  edgeOf(scroll);
  return { fill, set: (/** @type {Row[]} */ next) => { rows = next; fill(); } };
};

/** Shows on which side a box goes on. @param {HTMLElement} scroll */
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
 * @param {string[]} [only] names of columns, in order @param {Manner} [manner] */
const addTablesOf = (parent, id, only, manner) => {
  for (const own of tablesOf(id)) {
    const places = [...own.columns.keys()].filter((place) => !only || only.includes(own.columns[place].name));
    const rows = own.rows.map((/** @type {Row} */ row) => ({ at: row.at, cells: places.map((place) => row.cells[place]) }));
    addTable(parent, sectionOf(id)?.title ?? '', places.map((place) => own.columns[place]), rows, manner);
  }
};

/** A table of what a list of the report has. @param {Element} parent @param {string} name
 * @param {string} pointer @param {[string, string, string?][]} columns @param {Manner} [manner]
 * @param {(own: any) => boolean} [isMeant] */
const addTableAt = (parent, name, pointer, columns, manner, isMeant) => {
  const all = columnsOf(columns);
  const rows = rowsAt(pointer, all, isMeant);
  return rows.length ? addTable(parent, name, all, rows, manner) : null;
};
