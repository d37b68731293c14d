// Memory over the steps: each large variable is a block, stacked on what is always live.

/** @typedef {{place: number, own: any, spans: [number, number][], bytes: number}} Block `spans` are places
 *  of chosen steps, both ends inclusive */

/** Tiles of which the variables are known step by step. */
const knownTiles = () => {
  const own = report.live_steps;
  return own && report.liveness && !isHuge ? [own, ...(own.others ?? [])] : [];
};

/** How many blocks are drawn of all that are in sight. */
const MOST_BLOCKS = 400;

/** Every span of a variable as places of chosen steps. @param {any} own @param {any} live @returns {[number, number][]} */
const spansOf = (own, live) => own.live.map((/** @type {[number, number]} */ [from, to]) => [placeOf(live.steps, from), placeOf(live.steps, to)]);

/** The variables that are live at a chosen step, the largest first. @param {any} live @param {number} place */
const liveAt = (live, place) => live.variables.map((/** @type {any} */ own, /** @type {number} */ number) => ({ own, number }))
  .filter((/** @type {any} */ one) => spansOf(one.own, live).some(([from, to]) => from <= place && place <= to));

/** The memory of a tile over the steps. @param {HTMLElement} parent @param {any} live */
const addBlocks = (parent, live) => {
  const curve = live.curve ?? report.liveness.fullest_tile_curve;
  const limit = live.limit ?? report.provenance.target.bytes_per_tile;
  const base = curve.fixed + curve.always_live;
  /** @type {number[]} */
  const steps = live.steps;
  /** @type {Block[]} */
  const blocks = live.variables.flatMap((/** @type {any} */ own, /** @type {number} */ place) => own.is_always_live ? []
    : [{ place, own, spans: spansOf(own, live), bytes: own.bytes }]);
  /** Where the last paint has put each block: by chosen step, from the bottom up.
   * @type {Map<number, {block: Block, from: number, to: number}[]>} */
  let stacked = new Map();
  let last = /** @type {Scale | null} */ (null);
  const lastStep = Math.max(curve.last_step, steps.at(-1) ?? 0);
  const stepAfter = (/** @type {number} */ place) => place + 1 < steps.length ? steps[place + 1] : lastStep + 1;

  /** The block at a height of the drawing. @param {number} step @param {number} share */
  const under = (step, share) => {
    if (!last) return undefined;
    const y = share * HEIGHT;
    return stacked.get(placeOf(steps, step))?.find((own) => {
      const scale = /** @type {Scale} */ (last);
      return scale.y(own.from) >= y && y >= scale.y(own.to);
    })?.block;
  };

  /** @param {Element} inner @param {Scale} scale */
  const paint = (inner, scale) => {
    last = scale;
    const [start, end] = [placeOf(steps, scale.from), placeOf(steps, scale.to)];
    const isVisible = (/** @type {Block} */ own) => own.spans.some(([from, to]) => from <= end && to >= start);
    const visible = blocks.filter(isVisible).sort((a, b) => b.bytes - a.bytes).slice(0, MOST_BLOCKS)
      .sort((a, b) => a.spans[0][0] - b.spans[0][0] || b.bytes - a.bytes);
    const tops = [], lefts = [];
    stacked = new Map();
    for (let place = start; place <= end; place++) {
      stacked.set(place, []);
      lefts.push(Math.max(scale.x(steps[place]), 0));
      tops.push(scale.y(live.bytes[place]));
    }
    draw(inner, 'path', { class: 'tile-others', d: outline(lefts, tops, scale.width, scale.bottom) });
    const reached = new Array(end + 1).fill(base);
    for (const block of visible) {
      let path = '';
      for (const [from, to] of block.spans) {
        for (let place = Math.max(from, start); place <= Math.min(to, end); place++) {
          const bottom = reached[place];
          let next = place;
          while (next < Math.min(to, end) && reached[next + 1] === bottom) next++;
          for (let own = place; own <= next; own++) {
            reached[own] += block.bytes;
            stacked.get(own)?.push({ block, from: bottom, to: bottom + block.bytes });
          }
          const [left, right] = [Math.max(scale.x(steps[place]), 0), Math.min(scale.x(stepAfter(next)), scale.width)];
          path += `M${round(left)} ${scale.y(bottom)}H${round(right)}V${scale.y(bottom + block.bytes)}H${round(left)}Z`;
          place = next;
        }
      }
      if (!path) continue;
      const isOff = chosen.layer !== null && !inLayer(block.own, chosen.layer);
      const isChosen = chosen.variable === block.own.name;
      draw(inner, 'path', { class: `block shade-${block.place % 3} ${lookOf(block.own.category)}${isOff ? ' is-off' : ''}${isChosen ? ' is-chosen' : ''}`, d: path });
    }
    draw(inner, 'rect', { class: 'always', x: 0, width: scale.width, y: scale.y(base), height: round(scale.bottom - scale.y(base)) });
    if (!scale.low) draw(inner, 'rect', { class: 'overhead', x: 0, width: scale.width, y: scale.y(curve.fixed), height: round(scale.bottom - scale.y(curve.fixed)) });
  };

  const HEIGHT = 340;
  const highest = (/** @type {number} */ from, /** @type {number} */ to) => {
    let most = base;
    for (let place = placeOf(steps, from); place <= placeOf(steps, to); place++) most = Math.max(most, live.bytes[place]);
    return most;
  };
  const plot = addPlot(parent, {
    id: 'live-steps', label: `Memory of tile ${live.tile} over the steps`, unit: 'step', height: HEIGHT,
    first: Math.min(curve.first_step, steps[0] ?? 0), last: lastStep, places: steps, limit, isLow: true,
    marks: passMarks(), bands: layerBands(),
    value: () => chosen.step ?? curve.peak.step, choose: (step) => choose({ step, tile: live.tile }),
    range: (from, to, isLow) => {
      const most = highest(from, to);
      return isLow ? [Math.max(base - (most - base) * .08, 0), most] : [0, Math.max(most, limit < most * 1.6 ? limit : 0)];
    },
    said: (step, share) => {
      const place = placeOf(steps, step);
      const block = under(step, share);
      return `step ${grouped(step)}: ${grouped(bytesAt(curve, step))} bytes` + (block
        ? `\n${short(block.own.name, 80)}\n${grouped(block.bytes)} bytes, ${block.own.category}${block.own.layers.length ? `\nlayers ${layerList(block.own.layers)}` : ''}`
        : `\n${short(live.programs[place] ?? '', 120)}`);
    },
    paint, table: (inner) => addStepTable(inner, live),
  });
  plot.svg.addEventListener('click', (event) => {
    const box = plot.svg.getBoundingClientRect();
    const block = chosen.step === null ? undefined : under(chosen.step, (event.clientY - box.top) / box.height);
    choose({ variable: block ? block.own.name : null });
  });
  onChoice(['variable', 'layer'], plot.show);
  const caption = add(plot.figure, 'figcaption', 'Each block is a variable, as high as its bytes, over the steps at which it is live; grey above them are the others. Below all are ');
  addNumber(caption, 'span', curve.always_live, live.curve ? '' : '/liveness/fullest_tile_curve/always_live');
  caption.append(` bytes that are always live${curve.fixed ? ` and ${grouped(curve.fixed)} of code and the like` : ''}: press \u201cEnlarge what changes\u201d to see all of it. `
    + `Known are ${grouped(steps.length)} steps: peaks, where layers and stages begin and end, and the highest and lowest points between. Click a block or a step, drag over steps to enlarge them, or press the arrow keys, +, - and 0.`);
};

/** Does a variable count in a layer? @param {any} own @param {number} position */
const inLayer = (own, position) => own.layers.includes(report.layers[position]?.name ?? null);

/** @param {HTMLElement} inner @param {any} live */
const addStepTable = (inner, live) => {
  const isMain = live === report.live_steps;
  const place = (/** @type {string} */ field) => isMain ? `/live_steps/${field}/{}` : '';
  const columns = columnsOf([['Step', 'count', place('steps')], ['Runs', 'name'], ['Variables live', 'count', place('counts')], ['Bytes', 'bytes', place('bytes')]]);
  const rows = live.steps.map((/** @type {number} */ step, /** @type {number} */ own) => ({ at: String(own), cells: [step, live.programs[own], live.counts[own], live.bytes[own]] }));
  addTable(inner, 'Chosen steps', columns, rows, { most: 40, choose: (row) => choose({ step: row.cells[0] }) });
};

/** What is live at the chosen step. @param {HTMLElement} parent @param {any} live */
const addStep = (parent, live) => {
  const isMain = live === report.live_steps;
  const curve = live.curve ?? report.liveness.fullest_tile_curve;
  const root = isMain ? '/live_steps' : '';
  const head = addAs(parent, 'h3', 'live-steps-heading');
  const said = addAs(parent, 'p', 'live-steps-said');
  said.setAttribute('role', 'status');
  const runs = addAs(parent, 'p', 'live-steps-runs', '', 'soft name');
  const controls = add(parent, 'div', '', 'controls');
  const layer = addSelect(controls, 'Layer', 'live-steps-layer', [['', 'all'],
    ...report.layers.map((/** @type {any} */ own, /** @type {number} */ place) => /** @type {[string, string]} */ ([String(place), short(layerName(own.name), 60)]))]);
  layer.addEventListener('change', () => choose({ layer: layer.value === '' ? null : Number(layer.value) }));
  const changing = addField(controls, 'without those that are always live', 'checkbox', 'live-steps-changing');
  const tables = addAs(parent, 'div', 'live-steps-variables');
  const pair = add(parent, 'div', '', 'pair');
  const [categories, layers] = [add(pair, 'div'), add(pair, 'div')];
  const variableColumns = columnsOf([['Variable', 'name'], ['Bytes', 'bytes', root && '/bytes'], ['Category', 'text'], ['Layers', 'layers'], ['Live at chosen steps', 'text']]);

  const show = () => {
    const step = chosen.step ?? curve.peak.step;
    const place = placeOf(live.steps, step);
    head.textContent = `Tile ${live.tile} at step ${grouped(live.steps[place])}`;
    said.replaceChildren();
    if (live.steps[place] !== step) said.append(`Of step ${grouped(step)} only the bytes are known, ${grouped(bytesAt(curve, step))}; this is the chosen step before it. `);
    addNumber(said, 'span', live.counts[place], root && `${root}/counts/${place}`);
    said.append(' variables are live with ');
    addNumber(said, 'span', live.bytes[place], root && `${root}/bytes/${place}`);
    said.append(' bytes. Over all tiles, those that are not always live have ');
    addNumber(said, 'span', live.not_always_live[place], root && `${root}/not_always_live/${place}`);
    said.append('.');
    runs.textContent = printable([live.programs[place], live.operations[place] && `operation ${live.operations[place]}`].filter(Boolean).map((own) => short(own)).join(', '));
    layer.value = chosen.layer === null ? '' : String(chosen.layer);
    const own = liveAt(live, place).filter((/** @type {any} */ one) => (!changing.checked || !one.own.is_always_live)
      && (chosen.layer === null || inLayer(one.own, chosen.layer)));
    tables.replaceChildren();
    addTable(tables, `Largest live variables${chosen.layer === null ? '' : ` of ${layerName(report.layers[chosen.layer].name)}`}`, variableColumns,
      own.map((/** @type {any} */ one) => ({ at: root && `${root}/variables/${one.number}`, cells: [one.own.name, one.own.bytes, one.own.category, one.own.layers.length ? one.own.layers : null,
        one.own.is_always_live ? 'always' : one.own.live.map((/** @type {number[]} */ [from, to]) => from === to ? grouped(from) : `${grouped(from)} to ${grouped(to)}`).slice(0, 4).join(', ')] })),
      { most: 20, choose: (row) => choose({ variable: row.cells[0] }), isChosen: (row) => row.cells[0] === chosen.variable,
        look: (column, cell) => column.name === 'Category' ? lookOf(cell) : '' });
    if (isMain) {
      const listed = own.reduce((/** @type {number} */ sum, /** @type {any} */ one) => sum + one.own.bytes, 0);
      if (chosen.layer === null && !changing.checked && live.counts[place] > own.length) {
        add(tables, 'p', `${counted(live.counts[place] - own.length, 'other')} with ${counted(live.bytes[place] - listed, 'byte')}.`, 'soft').id = 'live-steps-others';
      }
    }
    addSums(categories, 'By category', live.categories, place, root && `${root}/categories`, true);
    addSums(layers, 'By layer', live.layers, place, root && `${root}/layers`, false);
  };
  changing.addEventListener('change', show);
  show();
  onChoice(['step', 'layer', 'variable'], show);
};

/** Bytes at a step by what they are of. @param {HTMLElement} parent @param {string} name @param {any[]} all
 * @param {number} place @param {string} root @param {boolean} areCategories */
const addSums = (parent, name, all, place, root, areCategories) => {
  parent.replaceChildren();
  const rows = all.map((own, number) => ({ at: root && `${root}/${number}`, cells: [areCategories ? own.name : layerName(own.name), own.bytes[place]], number }))
    .filter((row) => row.cells[1] > 0);
  const percent = shares(rows.map((row) => row.cells[1]));
  addTable(parent, name, columnsOf([[name, 'text'], ['Bytes', 'bytes', root && `/bytes/${place}`], ...(areCategories ? [/** @type {[string, string]} */ (['Share', 'text'])] : [])]),
    rows.map((row, number) => ({ ...row, cells: areCategories ? [...row.cells, percent[number]] : row.cells })), {
      most: 12, look: (column, cell) => areCategories && column.name === name ? lookOf(cell) : '',
      ...(areCategories ? {} : { choose: (/** @type {any} */ row) => choose({ layer: row.number }) }),
    });
  if (!areCategories) add(parent, 'p', 'What several layers use counts in each.', 'soft');
};

/** The whole view. @param {HTMLElement} parent */
const buildMemory = (parent) => {
  const known = knownTiles();
  const { liveness } = report;
  if (known.length) {
    const part = addPart(parent, 'live', 'Memory over the steps');
    const inner = add(part, 'div');
    const show = () => {
      const tile = chosen.tile ?? known[0].tile;
      const live = known.find((own) => own.tile === tile) ?? known[0];
      if (inner.dataset.tile === String(live.tile)) return;
      inner.dataset.tile = String(live.tile);
      inner.replaceChildren();
      if (known.length > 1) {
        const select = addSelect(add(inner, 'div', '', 'controls'), 'Tile', 'live-steps-tile', known.map((own) => [String(own.tile), `${own.tile}${own.stage === undefined ? '' : `, the fullest of IPU ${own.stage}`}`]));
        select.value = String(live.tile);
        select.addEventListener('change', () => choose({ tile: Number(select.value) }));
      }
      addBlocks(inner, live);
      addStep(inner, live);
    };
    show();
    onChoice(['tile'], show);
  } else if (liveness) {
    const part = addPart(parent, 'live', 'Memory over the steps');
    add(part, 'p', 'The report does not have single variables over the steps.', 'soft');
    addCurve(part, 'curve', `Bytes of tile ${liveness.fullest_tile} over the steps`, liveness.fullest_tile_curve, '/liveness/fullest_tile_curve', report.provenance.target.bytes_per_tile);
  }
  addTileMap(parent);
  if (liveness) {
    const part = addPart(parent, 'all-tiles', 'All tiles together');
    addCurve(part, 'all-curve', 'Bytes of all tiles over the steps', liveness.all_tiles, '/liveness/all_tiles');
    addPeakVariables(part, liveness.peak_variables, '/liveness/peak_variables');
  }
  addCategories(parent);
};

/** What was recorded by category. @param {HTMLElement} parent */
const addCategories = (parent) => {
  const all = report.memory.categories;
  if (!all.length) return;
  const part = addPart(parent, 'categories', 'By category');
  add(part, 'p', 'Variables that share memory at different steps all count here, so the categories of a tile can add up to more than it has in use.', 'soft');
  const columns = columnsOf([['Category', 'text', '/name'], ['All tiles', 'bytes', '/all_tiles'], ['Fullest tile', 'bytes', '/fullest_tile']]);
  const rows = rowsAt('/memory/categories', columns, (own) => Number(own.all_tiles) > 0).sort((a, b) => Number(b.cells[1]) - Number(a.cells[1]));
  addTable(part, 'Categories', columns, rows, { most: 30, look: (column, cell) => column.name === 'Category' ? lookOf(cell) : '' });
};
