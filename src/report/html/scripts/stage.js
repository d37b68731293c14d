// The chosen stage or IPU: the contents of its fullest tile, and its memory over the steps.

/** @typedef {{range: [number, number], bytes: number, limit: number}} StageBytes `range` is of positions */

/** The names of the layers at these positions. @param {[number, number]} range */
const layersAt = (range) => report.layers.slice(...range).map((own) => layerName(own.name));

/** Adds a stage to a strip of stages. @param {Element} strip */
const addStageBox = (strip) => {
  const box = add(strip, 'div', '', 'stage');
  add(add(box, 'div', '', 'level'), 'div', '', 'fill');
  add(box, 'span');
  return box;
};

/** Sets the place and width of a stage by its layers, and fills it as far as its fullest tile is full.
 * @param {HTMLElement} box @param {StageBytes} own @param {number} stage */
const fillStageBox = (box, { range, bytes, limit }, stage) => {
  const [left, right] = range.map((position) => position / report.layers.length * 100);
  const share = ofLimit(bytes, limit);
  Object.assign(box.style, { left: `${left}%`, width: `${right - left}%` });
  box.classList.toggle('is-over', bytes > limit);
  const [fill, label] = /** @type {NodeListOf<HTMLElement>} */ (box.querySelectorAll('.fill, span'));
  fill.style.height = `${Math.min(bytes / limit, 1) * 100}%`;
  const width = box.clientWidth;
  label.textContent = width > 108 ? `IPU ${stage}: ${share}` : width > 46 ? `IPU ${stage}` : width > 14 ? String(stage) : '';
  box.dataset.tip = `IPU ${stage}: ${share}\n${layerList(layersAt(range))}\n${grouped(bytes)} of ${grouped(limit)} bytes`;
};

/** Adds a small strip of the stages of a split. @param {Element} parent @param {StageBytes[]} stages */
const addStrip = (parent, stages) => {
  const said = stages.map((own, stage) => `IPU ${stage}: ${ofLimit(own.bytes, own.limit)}`).join(', ');
  const strip = set(add(parent, 'div', '', 'strip small'), { role: 'img', 'aria-label': said });
  stages.forEach((own, stage) => fillStageBox(addStageBox(strip), own, stage));
};

/** Shows the chosen stage or IPU. @param {HTMLElement} parent */
const addChosenStage = (parent) => {
  const stages = stagesOf();
  if (!stages.length) return;
  const box = addPart(parent, 'stage', '');
  follow(['ipu', ...TRIED], () => {
    const one = stages.find((own) => own.ipu === chosen.ipu) ?? nearestOf(stages);
    const { tile, ipu, stage, compiled } = one;
    box.replaceChildren();
    add(box, 'h2', `IPU ${ipu}${known?.isMoved() ? ' as it was searched' : ''}`);
    addSelect(add(box, 'div', '', 'controls'), 'Show', 'stage-ipu', stages.map((each) => [String(each.ipu), `IPU ${each.ipu}`]), (value) => {
      choose({ ipu: Number(value) });
      byId('stage-ipu').focus();
    }).value = String(ipu);
    addFullestTile(box, one);
    if (compiled) addFolded(box, 'All its categories', (inner) => addCategories(inner, `Categories of IPU ${ipu}`, `${one.at}/categories`));
    addHistogram(box, (stage ?? compiled)?.tiles, `${one.at}/tiles`, Number(tile.limit));
    const isMeant = (/** @type {Json.Band} */ band) => !!stage?.layers.includes(band.layer ?? null);
    if (one.curve) {
      add(box, 'h3', stage ? `Tile ${tile.tile} over the steps` : 'All its tiles over the steps');
      addCurve(box, 'stage-curve', `Bytes of IPU ${ipu} over the steps`, one.curve, `${one.at}/${stage ? 'fullest_tile_curve' : 'curve'}`, stage && tile.limit, isMeant);
    }
    if (!stage) return;
    const { all_tiles_curve: all, pipeline } = stage;
    if (all) addFolded(box, 'All its tiles together over the steps', (inner) => addCurve(inner, 'stage-all',
      `Bytes of all tiles of IPU ${ipu} over the steps`, all, `${one.at}/all_tiles_curve`, undefined, isMeant));
    addPeakVariables(box, stage.peak_variables, `${one.at}/peak_variables`);
    if (!pipeline?.copies) return;
    add(box, 'p', `With ${counted(pipeline.depth, 'pipeline stage')} after it, it keeps ${grouped(pipeline.copies)} more ${pipeline.copies === 1 ? 'copy' : 'copies'} of what it stashes.`);
    addTableAt(box, 'Largest stashed variables', `${one.at}/pipeline/stashed`, [['Variable', 'name', '/name'], ['Bytes of one copy', 'bytes', '/bytes'], ['Layers', 'layers', '/layers']]);
  });
};

/** Shows the contents of the tile that decides whether an IPU fits. @param {HTMLElement} box @param {OneIpu} one */
const addFullestTile = (box, { stage, compiled, tile, at: root }) => {
  const layers = (stage ?? compiled)?.layers;
  const step = tile.peak_step ?? null;
  const limit = Number(tile.limit);
  const line = addLine(box, 'p', [layers && `Layer${layers.length === 1 ? '' : 's'} ${layerList(layers)}. `, 'Tile ', [tile.tile, `${root}/fullest_tile/tile`],
    ' is its fullest, with ', [tile.bytes, `${root}/fullest_tile/bytes`], ` bytes, ${ofLimit(tile.bytes, tile.limit)} of the limit`,
    step !== null && ', at step ', step !== null && [step, `${root}/fullest_tile/peak_step`], '. ']);
  addButton(line, 'Show this tile in Memory', () => choose({ view: 'memory', tile: tile.tile, step: step ?? chosen.step }));
  const parts = partsOf(tile.parts);
  const sizes = parts.map((part) => Number(part.bytes));
  const percent = shares(sizes);
  addBar(box, parts, Math.max(sizes.reduce((a, b) => a + b, 0), limit), limit);
  addTable(box, `What is on tile ${tile.tile}`, columnsOf([['Part', 'text'], ['Bytes', 'bytes'], ['Share of all', 'percent']]),
    parts.map((part, place) => ({ at: part.look, cells: [part.name, part.bytes, percent[place]] })),
    { look: (column, _, row) => column.name === 'Part' ? row.at : '' });
  const kinds = Object.entries(stage?.fullest_tile.variable_kinds ?? {}).filter(([, bytes]) => bytes);
  if (kinds.length) addLine(box, 'p', ['Variables: ', ...kinds.flatMap(([kind, bytes], place) => /** @type {Pieces} */ ([
    `${place ? ', ' : ''}${kind.replace('_', ' ')} `, [bytes, `${root}/fullest_tile/variable_kinds/${kind}`]])), ' bytes.'], 'soft');
};

/** Adds a table of recorded bytes by category, the largest first. @param {HTMLElement} parent @param {string} name @param {string} pointer */
const addCategories = (parent, name, pointer) => {
  const columns = columnsOf([['Category', 'text', '/name'], ['All tiles', 'bytes', '/all_tiles'], ['Fullest tile', 'bytes', '/fullest_tile']]);
  const rows = rowsAt(pointer, columns, (own) => Number(own.all_tiles) > 0).sort((a, b) => Number(b.cells[1]) - Number(a.cells[1]));
  addTable(parent, name, columns, rows, { most: 30, look: lookOfCategory });
};

/** Draws the number of tiles in each range of bytes. @param {Element} parent @param {Json.Fullness | undefined} tiles
 * @param {string} pointer @param {number} limit */
const addHistogram = (parent, tiles, pointer, limit) => {
  if (!tiles?.histogram?.length) return;
  const buckets = tiles.histogram;
  const most = Math.max(...buckets.map((own) => own.tiles), 1);
  const each = 100 / buckets.length;
  add(parent, 'h3', 'Tiles by how full they are');
  const svg = draw(parent, 'svg', { class: 'histogram', height: 96, role: 'img', 'aria-label': 'Number of tiles by their bytes' });
  buckets.forEach(({ from, to, tiles: count }, place) => {
    const height = Math.max(count / most * 74, count ? 1.5 : 0);
    draw(svg, 'rect', {
      class: from > limit ? 'over' : 'tile-0', x: `${(place + .06) * each}%`, width: `${each * .88}%`, y: 74 - height, height,
      'data-tip': `${counted(count, 'tile')}\nwith ${grouped(from)} to ${grouped(to)} bytes`,
    });
    if (place % 5 === 0 && from <= limit) draw(svg, 'text', { class: 'axis', x: `${place * each}%`, y: 92 }, `${place * 5} %`);
  });
  addLine(parent, 'p', ['Half of the tiles have at most ', [tiles.median, `${pointer}/median`],
    ' bytes, 95 % at most ', [tiles.percentile_95, `${pointer}/percentile_95`], '. Columns are parts of the limit.'], 'soft');
  addFolded(parent, 'Table of the tiles', (inner) => addTableAt(inner, 'Tiles by their bytes', `${pointer}/histogram`,
    [['From', 'bytes', '/from'], ['To', 'bytes', '/to'], ['Tiles', 'count', '/tiles']], {}, (own) => own.tiles > 0));
};

/** The largest variables at a peak. @param {Element} parent @param {?Json.PeakVariables | undefined} live @param {string} pointer */
const addPeakVariables = (parent, live, pointer) => {
  if (!live) return;
  add(parent, 'h3', 'Variables that are live at the peak');
  addLine(parent, 'p', ['On tile ', [live.tile, `${pointer}/tile`], ' at step ', [live.step, `${pointer}/step`], ': ',
    [live.count, `${pointer}/count`], ' variables are live with ', [live.bytes, `${pointer}/bytes`], ' bytes.'], 'soft');
  addTableAt(parent, 'Largest live variables', `${pointer}/largest`,
    [['Variable', 'name', '/name'], ['Number', 'count', '/count'], ['Bytes', 'bytes', '/bytes'], ['Category', 'text', '/category'], ['Layers', 'layers', '/layers']],
    { most: 10, choose: ({ cells: [name, count] }) => choose({ variable: count > 1 ? null : name, view: 'memory' }), look: lookOfCategory });
  if (live.categories?.length) addFolded(parent, 'By category', (inner) => addTableAt(inner, 'Live bytes by category', `${pointer}/categories`,
    [['Category', 'text', '/name'], ['Bytes', 'bytes', '/bytes']], { look: lookOfCategory }));
};
