// Memory over the steps: each large variable is a block, stacked on what is always live.

/** @typedef {Required<Json.TileAtSteps> & {at: string}} TileSteps `at` is the tile's place in the report */
/** @typedef {{number: number, own: Json.VariableAtSteps, spans: [number, number][]}} Block `spans` are places of chosen steps, both ends inclusive */

/** Says which IPUs have this tile as their fullest tile. @param {number} tile */
const fullestOf = (tile) => {
  const own = stagesOf().filter((one) => one.tile.tile === tile).map((one) => one.ipu);
  return own.length > 3 ? `, the fullest of ${own.length} IPUs` : own.length ? `, the fullest of IPU ${own.join(', ')}` : '';
};

/** Upper bound on the blocks that are drawn: the largest ones in sight. */
const MOST_BLOCKS = 400;

/** Does a variable belong to the chosen layer? True if no layer is chosen. @param {Json.VariableAtSteps} own */
const isMeant = (own) => chosen.layer === null || hasChosenLayer(own.layers);

/** Draws the memory of a tile over the steps. @param {HTMLElement} parent @param {TileSteps} live @param {Json.LiveSteps} chosenSteps */
const addBlocks = (parent, live, { steps, programs }) => {
  const HEIGHT = 360;
  const base = live.always_live;
  const limit = report.provenance.target.bytes_per_tile;
  const peak = steps[live.bytes.indexOf(Math.max(...live.bytes))] ?? 0;
  /** @type {Block[]} */
  const blocks = live.variables.map((own, number) => ({
    number, own, spans: own.live.map(([from, to]) => [placeOf(steps, from), placeOf(steps, to)]),
  }));
  const always = blocks.filter(({ own }) => own.is_always_live);
  const named = always.reduce((sum, { own }) => sum + own.bytes, 0);
  const lastStep = Math.max(report.liveness?.fullest_tile_curve.last_step ?? 0, steps.at(-1) ?? 0);
  let isOpen = false;
  let isByLayer = false;
  const looks = new Map(report.layers.map((own, place) => [layerName(own.name), lookAt(place)]));
  /** The colour of the first layer of a variable. @param {(?string)[]} layers */
  const lookOfLayers = (layers) => layers.length ? looks.get(layerName(layers[0])) ?? lookAt(0) : 'tile-others';
  /** The bottom and top of each block in the last drawing, by chosen step, from the bottom up.
   * @type {Map<number, {block: Block, from: number, to: number}[]>} */
  let stacked = new Map();
  let last = /** @type {Scale | null} */ (null);

  /** The block at a height of the drawing; `share` is from 0 at the top to 1 at the bottom. @param {number} step @param {number} share */
  const under = (step, share) => stacked.get(placeOf(steps, step))?.find(({ from, to }) => last
    && last.y(from) >= share * HEIGHT && share * HEIGHT >= last.y(to))?.block;

  /** The bytes at the top of the blocks of a chosen step. @param {number} place */
  const topOf = (place) => Math.max(base, ...(stacked.get(place) ?? []).map(({ to }) => to));
  /** Is a height above the blocks, where the variables are that are too small to be drawn? @param {number} place @param {number} share */
  const isAbove = (place, share) => !!last && last.y(live.bytes[place]) <= share * HEIGHT && share * HEIGHT < last.y(topOf(place));

  /** @param {Element} inner @param {Scale} scale */
  const paint = (inner, scale) => {
    last = scale;
    const [start, end] = [placeOf(steps, scale.from), placeOf(steps, scale.to)];
    const xs = [...steps.slice(start, end + 1), steps[end + 1] ?? lastStep + 1].map((step) => Math.min(Math.max(scale.x(step), 0), scale.width));
    draw(inner, 'path', { class: 'tile-others', d: outline(xs.slice(0, -1), live.bytes.slice(start, end + 1).map(scale.y), scale.width, scale.bottom) });
    const visible = blocks.filter(({ own, spans }) => !own.is_always_live && spans.some(([from, to]) => from <= end && to >= start))
      .sort((a, b) => b.own.bytes - a.own.bytes).slice(0, MOST_BLOCKS)
      .sort((a, b) => a.spans[0][0] - b.spans[0][0] || b.own.bytes - a.own.bytes);
    stacked = new Map(Array.from({ length: end - start + 1 }, (_, place) => [start + place, []]));
    const floor = isOpen ? base - named : base;
    const reached = new Array(end + 1).fill(floor);
    for (const block of isOpen ? [...always, ...visible] : visible) paintBlock(inner, scale, block, reached, [start, end], xs);
    draw(inner, 'rect', { class: 'always', x: 0, width: scale.width, y: scale.y(floor), height: round(scale.bottom - scale.y(floor)) });
  };

  /** @param {Element} inner @param {Scale} scale @param {Block} block @param {number[]} reached the
   * bytes at the top of the blocks below, by chosen step @param {[number, number]} sight @param {number[]} xs */
  const paintBlock = (inner, scale, block, reached, [start, end], xs) => {
    const { own, spans, number } = block;
    let path = '';
    for (const [first, to] of spans) {
      for (let place = Math.max(first, start); place <= Math.min(to, end); place++) {
        const bottom = reached[place];
        const left = xs[place - start];
        for (let next = place; next <= Math.min(to, end) && reached[next] === bottom; next++) {
          reached[next] += own.bytes;
          stacked.get(next)?.push({ block, from: bottom, to: bottom + own.bytes });
          place = next;
        }
        path += `M${round(left)} ${scale.y(bottom)}H${round(xs[place + 1 - start])}V${scale.y(bottom + own.bytes)}H${round(left)}Z`;
      }
    }
    // The edges of a very low block would hide the block itself.
    const isThin = own.bytes * (scale.bottom - scale.top) < 2.5 * (scale.most - scale.low);
    const classes = [`block shade-${number % 3}`, isThin ? 'is-thin' : '', isByLayer ? lookOfLayers(own.layers) : lookOf(own.category), isMeant(own) ? '' : 'is-off', chosen.variable === own.name ? 'is-chosen' : ''];
    if (path) draw(inner, 'path', { class: classes.filter(Boolean).join(' '), d: path });
  };

  const plot = addPlot(parent, {
    id: 'live-steps', label: `Memory of tile ${live.tile} over the steps`, unit: 'step', height: HEIGHT,
    first: Math.min(report.liveness?.fullest_tile_curve.first_step ?? 0, steps[0] ?? 0), last: lastStep, places: steps, limit, isLow: true,
    marks: passMarks(), bands: layerBands, redraws: ['variable', 'layer'],
    value: () => chosen.step ?? peak,
    choose: (step, share) => choose({ step, tile: live.tile, ...(share === undefined ? {} : { variable: under(step, share)?.own.name ?? null }) }),
    range: (from, to) => [base, Math.max(...live.bytes.slice(placeOf(steps, from), placeOf(steps, to) + 1), base)],
    said: (step, share) => {
      const place = placeOf(steps, step);
      const block = under(step, share);
      const isBelow = last && share * HEIGHT > last.y(base);
      return `step ${grouped(steps[place])}: ${grouped(live.bytes[place])} bytes\n` + (block
        ? `${short(block.own.name, 80)}\n${grouped(block.own.bytes)} bytes, ${block.own.category}${block.own.layers.length ? `\nlayers ${layerList(block.own.layers)}` : ''}`
        : isAbove(place, share) ? `${grouped(live.bytes[place] - topOf(place))} bytes of smaller variables`
        : isBelow ? `${grouped(isOpen ? base - named : base)} bytes ${isOpen ? 'of smaller variables that are' : ''} always live` : short(programs[place] ?? '', 120));
    },
    paint,
    table: (inner) => {
      const columns = columnsOf([['Step', 'count', '/live_steps/steps/{}'], ['Runs', 'name'],
        ['Variables live', 'count', `${live.at}/counts/{}`], ['Bytes', 'bytes', `${live.at}/bytes/{}`]]);
      const rows = steps.map((step, own) => ({ at: String(own), cells: [step, programs[own], live.counts[own], live.bytes[own]] }));
      addTable(inner, 'Chosen steps', columns, rows, { most: 40, choose: (row) => choose({ step: row.cells[0] }) });
    },
  });
  const opening = set(addButton(plot.tools, 'Show what is always live', () => {
    isOpen = !isOpen;
    set(opening, { 'aria-pressed': String(isOpen) });
    plot.setLow(!isOpen);
  }, 'live-steps-open'), { 'aria-pressed': 'false' });
  addSelect(plot.tools, 'Colours', 'live-steps-colours', [['category', 'by category'], ['layer', 'by layer']], (value) => {
    isByLayer = value === 'layer';
    plot.show();
  });
  addLine(plot.figure, 'figcaption', ['The whole model, as it was recorded on one IPU. Each block is a variable: it is as high as its bytes and covers the steps at which it is live. Smaller variables are grey, above the blocks. At the bottom are ',
    [base, `${live.at}/always_live`], ` bytes that are always live. The chart has ${grouped(steps.length)} chosen steps: peaks, the first and last steps of layers and stages, and turning points between. `
    + 'Click a block or a step; drag over a part to enlarge it, or use two fingers. Keys: arrows, + and - for the steps, T and F for the height, 0 for the whole.']);
};

/** Shows the variables that are live at the chosen step. @param {HTMLElement} parent @param {TileSteps} live @param {Json.LiveSteps} chosenSteps */
const addStep = (parent, live, { steps, programs, operations, not_always_live: moving }) => {
  const head = addAs(parent, 'h3', 'live-steps-heading');
  const said = set(addAs(parent, 'p', 'live-steps-said'), { role: 'status' });
  const runs = addAs(parent, 'p', 'live-steps-runs', '', 'soft name');
  const controls = add(parent, 'div', '', 'controls');
  const layer = addSelect(controls, 'Layer', 'live-steps-layer', [['', 'all'],
    ...report.layers.map((own, place) => /** @type {[string, string]} */ ([String(place), short(layerName(own.name), 60)]))],
  (value) => choose({ layer: value === '' ? null : Number(value) }));
  const changing = addField(controls, 'hide variables that are always live', 'checkbox', 'live-steps-changing', () => show());
  const tables = addAs(parent, 'div', 'live-steps-variables');
  const pair = addAs(parent, 'div', 'live-steps-sums', '', 'pair');
  const [categories, layers] = [add(pair, 'div'), add(pair, 'div')];
  const columns = columnsOf([['Variable', 'name'], ['Bytes', 'bytes', '/bytes'], ['Category', 'text'], ['Layers', 'layers'], ['Live at chosen steps', 'text']]);
  const peak = live.bytes.indexOf(Math.max(...live.bytes));

  const show = () => {
    const place = chosen.step === null ? peak : placeOf(steps, chosen.step);
    head.textContent = `Tile ${live.tile} at step ${grouped(steps[place])}`;
    said.replaceChildren();
    write(said, [chosen.step !== null && steps[place] !== chosen.step ? `Step ${grouped(chosen.step)} is not one of the chosen steps: this is the one before it. ` : '',
      [live.counts[place], `${live.at}/counts/${place}`], ' variables are live with ', [live.bytes[place], `${live.at}/bytes/${place}`],
      ' bytes. Over all tiles, variables that are not always live have ', [moving[place], `/live_steps/not_always_live/${place}`], ' bytes.']);
    runs.textContent = printable([programs[place], operations[place] && `operation ${operations[place]}`].map((own) => short(own ?? '')).filter(Boolean).join(', '));
    layer.value = String(chosen.layer ?? '');
    const isLive = (/** @type {Json.VariableAtSteps} */ own) => own.live.some(([from, to]) => from <= steps[place] && steps[place] <= to)
      && (!changing.checked || !own.is_always_live) && isMeant(own);
    const own = live.variables.map((one, number) => ({ one, number })).filter(({ one }) => isLive(one));
    tables.replaceChildren();
    addTable(tables, `Largest live variables${chosen.layer === null ? '' : ` of ${layerName(report.layers[chosen.layer]?.name)}`}`, columns,
      own.map(({ one, number }) => ({ at: `${live.at}/variables/${number}`, cells: [one.name, one.bytes, one.category, one.layers.length ? one.layers : null,
        one.is_always_live ? 'always' : one.live.map(([from, to]) => from === to ? grouped(from) : `${grouped(from)} to ${grouped(to)}`).slice(0, 4).join(', ')] })),
      { most: 20, choose: (row) => choose({ variable: row.cells[0] }), isChosen: (row) => row.cells[0] === chosen.variable, look: lookOfCategory });
    const listed = own.reduce((sum, { one }) => sum + one.bytes, 0);
    if (chosen.layer === null && !changing.checked && live.counts[place] > own.length) {
      add(tables, 'p', `${counted(live.counts[place] - own.length, 'other')} with ${counted(live.bytes[place] - listed, 'byte')}.`, 'soft').id = 'live-steps-others';
    }
    addSums(categories, live.categories.map((one) => one.name), live.categories, place, `${live.at}/categories`);
    addSums(layers, live.layers.map((one) => layerName(one.name)), live.layers, place, `${live.at}/layers`);
    if (live.layers.length) add(layers, 'p', 'A variable that several layers use counts in each of them.', 'soft');
  };
  follow(['step', 'layer'], show, head);
};

/** Adds a table of the bytes at a step by layer, or by category. Only categories add up to the whole. @param {HTMLElement} parent
 * @param {string[]} names @param {{bytes: number[]}[]} all @param {number} place @param {string} root */
const addSums = (parent, names, all, place, root) => {
  const isOfLayers = root.endsWith('layers');
  const name = isOfLayers ? 'By layer' : 'By category';
  parent.replaceChildren();
  if (!all.length) return;
  const percent = shares(all.map((own) => own.bytes[place]));
  const rows = all.map((own, number) => ({ at: String(number), cells: [names[number], own.bytes[place], ...(isOfLayers ? [] : [percent[number]])] }));
  addTable(parent, name, columnsOf([[name, 'text'], ['Bytes', 'bytes', `${root}/{}/bytes/${place}`], !isOfLayers && ['Share', 'percent']]),
    rows.filter((row) => Number(row.cells[1]) > 0), isOfLayers
      ? { most: 12, choose: (row) => choose({ layer: Number(row.at) }), isChosen: (row) => Number(row.at) === chosen.layer }
      : { most: 12, look: (_, cell, row) => cell === row.cells[0] ? lookOf(cell) : '' });
};

/** Builds the view of memory over the steps. @param {HTMLElement} parent */
const buildMemory = (parent) => {
  if (report.split) add(parent, 'p', 'These are the recorded tiles of the compilation for one IPU. Split has the tiles of each stage.', 'soft');
  const { liveness, live_steps: steps } = report;
  if (steps && !isHuge) {
    /** The fullest tile comes first. @type {TileSteps[]} */
    const tiles = [steps, ...steps.others].map((one, place) => ({ ...one, at: place ? `/live_steps/others/${place - 1}` : '/live_steps' }));
    const part = addPart(parent, 'live', 'Memory over the steps');
    const controls = add(part, 'div', '', 'controls');
    const select = addSelect(controls, 'Tile', 'live-steps-tile', tiles.map((own) => [String(own.tile), `${own.tile}${fullestOf(own.tile)}`]),
      (value) => choose({ tile: Number(value) }));
    const note = add(controls, 'span', '', 'soft');
    const inner = add(part, 'div');
    follow(['tile'], () => {
      const live = tiles.find((own) => own.tile === chosen.tile) ?? tiles[0];
      note.textContent = chosen.tile === null || live.tile === chosen.tile ? '' : `The steps of tile ${chosen.tile} are not in the report.`;
      if (inner.dataset.tile === String(live.tile)) return;
      inner.dataset.tile = select.value = String(live.tile);
      inner.replaceChildren();
      addBlocks(inner, live, steps);
      addStep(inner, live, steps);
    });
  } else if (liveness) {
    const part = addPart(parent, 'live', 'Memory over the steps', 'The report does not say which variables are live at each step.');
    addCurve(part, 'curve', `Bytes of tile ${liveness.fullest_tile} over the steps`, liveness.fullest_tile_curve, '/liveness/fullest_tile_curve', report.provenance.target.bytes_per_tile);
  }
  addTileMap(parent);
  if (liveness) {
    const part = addPart(parent, 'all-tiles', 'All tiles together');
    addCurve(part, 'all-curve', 'Bytes of all tiles over the steps', liveness.all_tiles, '/liveness/all_tiles');
    addPeakVariables(part, liveness.peak_variables, '/liveness/peak_variables');
  }
  if (report.memory.categories.length) {
    const part = addPart(parent, 'categories', 'By category',
      'Variables that share memory at different steps all count here, so the categories of a tile can add up to more than it has in use.');
    addCategories(part, 'Categories', '/memory/categories');
  }
};
