// The map of all tiles, one column each, and the table of the tile that is chosen.
(() => {
  /**
   * @typedef {{by: boolean, numbers: string}} Above
   * @typedef {{ipu: ?number, first: number, end: number, limit: number, at: string}} Ipu
   * @typedef {{name: string, place: number, bytes: string, overlapped: string}} Packed
   * @typedef {{most: number, tiles: string, stems: [string, string, boolean][],
   *   largest: string}} PackedVariables
   * @typedef {object} Data
   * @property {number} fullest
   * @property {string} always_live
   * @property {string} not_always_live
   * @property {Above} total above what is live
   * @property {?Above} with_gaps above the total
   * @property {Ipu[]} ipus
   * @property {Packed[]} categories those with most bytes first
   * @property {number} left_out how many categories are not in the page
   * @property {?PackedVariables} variables
   */
  /** @type {?Data} */
  const data = dataOf('tile-map-data');
  if (!data) return;
  /** @param {string} name */
  const part = (name) => byId('tile-map-' + name);

  /** @param {Above} own @param {(tile: number) => number} base */
  const above = (own, base) => {
    const numbers = unpacked(own.numbers);
    return own.by ? numbers.map((number, tile) => number + base(tile)) : numbers;
  };

  // Where there is no room for what is live, these are empty.
  const always = unpacked(data.always_live);
  const others = unpacked(data.not_always_live);
  const total = above(data.total, (tile) => always[tile] + others[tile]);
  const withGaps = data.with_gaps && above(data.with_gaps, (tile) => total[tile]);
  const categories = data.categories.map((own) => ({
    name: own.name,
    at: `/memory/tile_map/categories/${own.place}`,
    bytes: unpacked(own.bytes),
    overlapped: unpacked(own.overlapped),
  }));
  const last = data.ipus[data.ipus.length - 1].end - 1;

  /** @typedef {{name: string, category: string, always: boolean, bytes: number}} Variable */
  /** By tile: the place of its list in the report, and its largest variables.
   * @type {Map<number, {place: number, list: Variable[]}>} */
  const variables = new Map();
  if (data.variables) {
    const { tiles, stems, largest } = data.variables;
    const numbers = plain(largest);
    let at = 0;
    plain(tiles).forEach((tile, place) => {
      /** @type {Variable[]} */
      const list = [];
      for (let count = numbers[at++]; count > 0; count--, at += 3) {
        const [stem, category, isAlways] = stems[numbers[at]];
        const number = numbers[at + 1] ? String(numbers[at + 1] - 1) : '';
        list.push({ name: stem + number, category, always: isAlways, bytes: numbers[at + 2] });
      }
      variables.set(tile, { place, list });
    });
  }

  /** Bytes of a category at addresses of its own. @param {number} place @param {number} tile */
  const alone = (place, tile) => {
    const own = categories[place];
    return Math.max((own.bytes[tile] ?? 0) - (own.overlapped[tile] ?? 0), 0);
  };

  /** How many categories have a colour of their own. */
  const COLOURS = 12;
  const coloured = categories.length > COLOURS + 1 ? COLOURS : Math.min(categories.length, COLOURS);
  const hasOthers = categories.length > coloured;
  // What is drawn, from the bottom up: its class, and what it is called.
  const layers = categories.slice(0, coloured).map((own, place) => ({ look: `tile-${place}`, name: own.name }));
  if (hasOthers) layers.push({ look: 'tile-others', name: `${categories.length - coloured} others` });
  layers.push({ look: 'tile-shared', name: data.left_out ? 'Shared addresses, and categories left out' : 'Shared addresses' });
  if (withGaps) layers.push({ look: 'gaps', name: 'Gaps' });

  /** How high each layer of a tile reaches, from the bottom up. @param {number} tile */
  const heights = (tile) => {
    const reached = [];
    let sum = 0;
    for (let place = 0; place < coloured; place++) reached.push(sum += alone(place, tile));
    for (let place = coloured; place < categories.length; place++) sum += alone(place, tile);
    if (hasOthers) reached.push(sum);
    reached.push(Math.max(sum, total[tile]));
    if (withGaps) reached.push(Math.max(sum, total[tile], withGaps[tile] ?? 0));
    return reached;
  };

  const svg = /** @type {SVGSVGElement} */ (/** @type {unknown} */ (part('chart')));
  const HEIGHT = 280, ABOVE = 16, BELOW = 20;
  const FEWEST = 8;

  // What is shown: tiles in an order, and the places of those that are visible.
  const now = { ipu: -1, sorted: false, isLow: false, from: 0, to: 0, tile: data.fullest };
  /** @type {number[]} */
  let order = [];
  /** By tile: its place in the order. @type {Map<number, number>} */
  let placeOfTile = new Map();

  /** The IPU of a tile. @param {number} tile */
  const ipuOf = (tile) => data.ipus.findIndex((own) => own.first <= tile && tile < own.end);

  /** @param {number} tile */
  const limitOf = (tile) => data.ipus[Math.max(ipuOf(tile), 0)];

  const isEvery = () => now.ipu < 0;
  const chosen = () => placeOfTile.get(now.tile) ?? 0;

  /** Puts the tiles of the IPU in order, all of them visible. */
  const arrange = () => {
    const shown = isEvery() ? data.ipus : [data.ipus[now.ipu]];
    order = shown.flatMap((own) => Array.from({ length: own.end - own.first }, (_, at) => own.first + at));
    if (now.sorted) order.sort((a, b) => total[b] - total[a] || a - b);
    placeOfTile = new Map(order.map((tile, place) => [tile, place]));
    now.from = 0;
    now.to = order.length;
  };

  /** What the whole height is, and the pixel from the top of some bytes. */
  const vertical = () => {
    let most = 1;
    for (const tile of now.isLow ? order.slice(now.from, now.to) : order) {
      most = Math.max(most, total[tile], withGaps?.[tile] ?? 0, now.isLow ? 0 : limitOf(tile).limit);
    }
    most *= 9 / 8;
    /** @param {number} bytes */
    const y = (bytes) => Math.round((ABOVE + (HEIGHT - ABOVE - BELOW) * (1 - bytes / most)) * 10) / 10;
    return { most, y };
  };

  /** The tile of each column: the fullest of those that are of it. */
  const columns = () => {
    const count = now.to - now.from;
    const most = Math.max(Math.floor(svg.clientWidth * devicePixelRatio), 100);
    if (count <= most) return order.slice(now.from, now.to);
    const columns = [];
    for (let column = 0; column < most; column++) {
      const from = now.from + Math.floor(column * count / most);
      const to = now.from + Math.floor((column + 1) * count / most);
      let fullest = order[from];
      for (let place = from + 1; place < to; place++) {
        if (total[order[place]] > total[fullest]) fullest = order[place];
      }
      columns.push(fullest);
    }
    return columns;
  };

  /** The outline over numbers of pixels from the top. @param {number[]} tops
   * @param {number} width of each */
  const outline = (tops, width) => {
    const base = HEIGHT - BELOW;
    let path = `M0 ${base}`;
    let before = base;
    tops.forEach((top, column) => {
      if (top === before) return;
      path += `H${Math.round(column * width * 100) / 100}V${top}`;
      before = top;
    });
    return `${path}H${Math.round(tops.length * width * 100) / 100}V${base}Z`;
  };

  const drawPattern = () => {
    const pattern = draw(draw(svg, 'defs', {}), 'pattern', {
      id: 'tile-map-hatched', width: 6, height: 6, patternUnits: 'userSpaceOnUse',
      patternTransform: 'rotate(45)',
    });
    draw(pattern, 'rect', { class: 'tile-back', width: 6, height: 6 });
    draw(pattern, 'rect', { class: 'tile-hatch', width: 2, height: 6 });
  };

  /** The limit over the visible tiles. @param {(bytes: number) => number} y */
  const drawLimits = (y) => {
    const count = now.to - now.from;
    const percent = (/** @type {number} */ place) => `${Math.round((place - now.from) / count * 1e4) / 100}%`;
    let from = now.from;
    for (let place = from + 1; place <= now.to; place++) {
      const own = limitOf(order[from]);
      if (place < now.to && limitOf(order[place]).limit === own.limit) continue;
      draw(svg, 'line', { class: 'limit', x1: percent(from), x2: percent(place), y1: y(own.limit), y2: y(own.limit) });
      from = place;
    }
    const { limit } = limitOf(order[now.to - 1]);
    draw(svg, 'text', { class: 'limit-text halo', x: '100%', y: y(limit) - 4, 'text-anchor': 'end' },
      `limit ${rounded(limit)}`);
  };

  /** The border of each IPU, where tiles are by number. */
  const drawBorders = () => {
    if (now.sorted || !isEvery()) return;
    for (const own of data.ipus) {
      const place = placeOfTile.get(own.first) ?? 0;
      if (place <= now.from || place >= now.to) continue;
      const x = `${(place - now.from) / (now.to - now.from) * 100}%`;
      draw(svg, 'line', { class: 'mark', x1: x, x2: x, y1: ABOVE, y2: HEIGHT - BELOW });
    }
  };

  const show = () => {
    const { most, y } = vertical();
    const shown = columns();
    const reached = shown.map(heights);
    const width = Math.max(svg.clientWidth, 1);
    svg.replaceChildren();
    drawPattern();
    drawScale(svg, part('scale'), ticks(most), y);
    const inner = draw(svg, 'svg', {
      class: 'tile-columns', width: '100%', height: HEIGHT, viewBox: `0 0 ${width} ${HEIGHT}`,
      preserveAspectRatio: 'none',
    });
    for (let layer = layers.length - 1; layer >= 0; layer--) {
      const tops = reached.map((own) => y(own[layer]));
      draw(inner, 'path', { class: layers[layer].look, d: outline(tops, width / shown.length) });
    }
    const inUse = shown.map((tile) => y(total[tile]));
    draw(inner, 'path', { class: 'tile-total', d: outline(inUse, width / shown.length) });
    drawBorders();
    if (!now.isLow) drawLimits(y);
    const ends = [order[now.from], order[now.to - 1]].map(grouped);
    draw(svg, 'text', { class: 'axis', x: 0, y: HEIGHT - 5 }, `tile ${ends[0]}`);
    draw(svg, 'text', { class: 'axis', x: '100%', y: HEIGHT - 5, 'text-anchor': 'end' }, ends[1]);
    draw(svg, 'line', { class: 'tile-cursor', y1: ABOVE - 6, y2: HEIGHT - BELOW });
    draw(draw(svg, 'svg', { class: 'tile-pointer' }), 'path', { d: `M-5 ${ABOVE - 12}h10l-5 8Z` });
    part('thinned').hidden = shown.length === now.to - now.from;
    showRange();
    showChosen();
  };

  const showRange = () => {
    const [from, to] = [now.from, now.to - 1];
    const where = isEvery() || data.ipus.length < 2 ? '' : ` of IPU ${data.ipus[now.ipu].ipu}`;
    part('range').textContent = now.sorted
      ? `Shown: tiles${where} from the fullest, places ${grouped(from + 1)} to ${grouped(to + 1)} of ${grouped(order.length)}.`
      : `Shown: tiles ${grouped(order[from])} to ${grouped(order[to])}${where}.`;
    /** @type {HTMLButtonElement} */ (part('in')).disabled = now.to - now.from <= FEWEST;
    for (const name of ['out', 'whole']) {
      /** @type {HTMLButtonElement} */ (part(name)).disabled = now.to - now.from >= order.length;
    }
  };

  /** The name of a tile; of several IPUs with its place there. @param {number} tile */
  const nameOf = (tile) => {
    const own = limitOf(tile);
    return data.ipus.length < 2 ? `tile ${grouped(tile)}`
      : `tile ${grouped(tile)}: tile ${grouped(tile - own.first)} of IPU ${own.ipu}`;
  };

  const showChosen = () => {
    const { tile } = now;
    const place = (chosen() - now.from + 0.5) / (now.to - now.from);
    const isVisible = place >= 0 && place <= 1;
    const [line, pointer] = [svg.querySelector('.tile-cursor'), svg.querySelector('.tile-pointer')];
    for (const name of ['x1', 'x2']) line?.setAttribute(name, `${place * 100}%`);
    pointer?.setAttribute('x', `${place * 100}%`);
    for (const one of [line, pointer]) one?.setAttribute('visibility', isVisible ? 'visible' : 'hidden');
    svg.setAttribute('aria-valuemin', String(isEvery() ? 0 : data.ipus[now.ipu].first));
    svg.setAttribute('aria-valuemax', String(isEvery() ? last : data.ipus[now.ipu].end - 1));
    svg.setAttribute('aria-valuenow', String(tile));
    svg.setAttribute('aria-valuetext', `${nameOf(tile)}, ${grouped(total[tile])} bytes in use`);
    const input = /** @type {HTMLInputElement} */ (part('tile'));
    if (document.activeElement !== input) input.value = String(tile);
    const name = nameOf(tile);
    part('name').textContent = name[0].toUpperCase() + name.slice(1);
    showBytes(tile);
    showCategories(tile);
    showVariables(tile);
  };

  /**
   * Adds a cell with a number; `at` is where it is in the JSON form of the report.
   * @param {Element} row @param {number | undefined} number @param {string} [at]
   */
  const cell = (row, number, at) => {
    const own = add(row, 'td', number === undefined ? '\u2013' : grouped(number), 'n');
    if (at && number !== undefined) own.dataset.json = at;
    return own;
  };

  /** @param {number} tile */
  const showBytes = (tile) => {
    const body = part('bytes');
    body.replaceChildren();
    /** @param {string} name @param {number | undefined} bytes @param {string} [at] */
    const row = (name, bytes, at) => {
      const own = add(body, 'tr', '');
      add(own, 'th', name).setAttribute('scope', 'row');
      return cell(own, bytes, at);
    };
    const list = (/** @type {string} */ name) => `/memory/tiles/${name}/${tile}`;
    const { limit, at } = limitOf(tile);
    row('Bytes in use', total[tile], list('total'));
    if (withGaps) {
      row('With gaps', withGaps[tile], list('with_gaps'));
      row('Gaps', withGaps[tile] === undefined ? undefined : withGaps[tile] - total[tile]);
    }
    row('Always live', always[tile], list('always_live'));
    row('Most of others', others[tile], list('not_always_live'));
    row('Limit', limit, at);
    const free = row('Free of the limit', limit - total[tile]);
    if (limit < total[tile]) free.classList.add('bad');
  };

  /** @param {number} tile */
  const showCategories = (tile) => {
    const body = part('categories');
    body.replaceChildren();
    const there = categories.map((own, place) => ({ own, place }));
    const most = there.filter(({ own }) => own.bytes[tile] > 0);
    most.sort((a, b) => b.own.bytes[tile] - a.own.bytes[tile]);
    for (const { own, place } of most) {
      const row = add(body, 'tr', '');
      const name = add(row, 'th', '', 'name');
      name.setAttribute('scope', 'row');
      swatch(name, place < coloured ? layers[place].look : 'tile-others');
      name.append(own.name);
      cell(row, own.bytes[tile], `${own.at}/bytes/${tile}`);
      cell(row, alone(place, tile));
      cell(row, own.overlapped[tile] ?? 0, own.overlapped.length ? `${own.at}/overlapped/${tile}` : '');
    }
    if (data.left_out) {
      const row = add(body, 'tr', '');
      const names = data.left_out === 1 ? 'category has' : 'categories have';
      const note = add(row, 'td', `${data.left_out} more ${names} too many numbers for a page.`, 'soft wrap');
      note.setAttribute('colspan', '4');
    }
  };

  /** @param {number} tile */
  const showVariables = (tile) => {
    if (!data.variables) return;
    const found = variables.get(tile);
    const body = part('largest');
    body.replaceChildren();
    part('variables').hidden = !found;
    found?.list.forEach((own, place) => {
      const row = add(body, 'tr', '');
      add(row, 'td', own.name, 'name wrap');
      add(row, 'td', own.category, 'name');
      add(row, 'td', own.always ? 'always' : 'at some steps');
      cell(row, own.bytes, `/memory/tile_map/variables/largest/${found.place}/${place}/1`);
    });
    const isSome = variables.size <= last;
    const known = `The page lists the variables of the ${grouped(variables.size)} fullest tiles.`;
    part('variables-note').textContent = found && !isSome
      ? `The ${data.variables.most} largest at most.`
      : found ? `The ${data.variables.most} largest at most. ${known}` : `${known} This is none of them.`;
  };

  /** A sample of a colour. @param {Element} parent @param {string} look */
  const swatch = (parent, look) => {
    const own = draw(parent, 'svg', { viewBox: '0 0 10 10', 'aria-hidden': 'true', class: 'swatch' });
    draw(own, 'rect', { class: look, width: 10, height: 10 });
  };

  const showLegend = () => {
    for (const { look, name } of layers) {
      const entry = add(part('legend'), 'li', '');
      swatch(entry, look);
      entry.append(name);
    }
  };

  /** Makes so many tiles visible, with one in the middle as far as there is room.
   * @param {number} count @param {number} middle its place */
  const zoom = (count, middle) => {
    count = Math.min(Math.max(Math.round(count), FEWEST), order.length);
    now.from = Math.min(Math.max(middle - (count >> 1), 0), order.length - count);
    now.to = now.from + count;
    show();
  };

  /** @param {number} factor */
  const zoomBy = (factor) => zoom((now.to - now.from) * factor, chosen());

  /** Chooses a tile, and moves what is visible as far as that needs. @param {number} tile */
  const choose = (tile) => {
    now.tile = tile;
    if (!placeOfTile.has(tile)) {
      now.ipu = ipuOf(tile);
      /** @type {HTMLSelectElement} */ (part('ipu')).value = String(now.ipu);
      arrange();
      show();
      return;
    }
    const place = chosen();
    if (place >= now.from && place < now.to) showChosen(); else zoom(now.to - now.from, place);
  };

  svg.addEventListener('keydown', (event) => {
    if (!isPlain(event)) return;
    const far = Math.max(Math.round((now.to - now.from) / 10), 1);
    const goal = goalOf(event, chosen(), far, 0, order.length - 1);
    if (goal !== undefined) choose(order[goal]);
    else if (event.key === '+' || event.key === '=') zoomBy(0.5);
    else if (event.key === '-') zoomBy(2);
    else if (event.key === '0') zoom(order.length, 0);
    else return;
    event.preventDefault();
  });

  /** The place of the tile under the pointer. @param {MouseEvent} event */
  const under = (event) => {
    const place = now.from + Math.floor(shareOf(svg, event) * (now.to - now.from));
    return Math.min(place, now.to - 1);
  };

  // Not when a finger goes down: it may be about to scroll.
  svg.addEventListener('click', (event) => choose(order[under(event)]));
  svg.addEventListener('pointermove', (event) => {
    const tile = order[under(event)];
    // What `hover.js` shows.
    svg.dataset.tip = `${nameOf(tile)}\n${grouped(total[tile])} bytes in use`;
    if (event.buttons === 1 && event.pointerType === 'mouse') choose(tile);
  });
  svg.addEventListener('wheel', (event) => {
    if (!event.ctrlKey) return;
    event.preventDefault();
    zoom((now.to - now.from) * (event.deltaY < 0 ? 0.8 : 1.25), under(event));
  }, { passive: false });

  part('in').addEventListener('click', () => zoomBy(0.5));
  part('out').addEventListener('click', () => zoomBy(2));
  part('whole').addEventListener('click', () => zoom(order.length, 0));
  const [ipu, by, height] = ['ipu', 'order', 'height'].map((name) => /** @type {HTMLSelectElement} */ (part(name)));
  ipu.addEventListener('change', () => {
    now.ipu = Number(ipu.value);
    arrange();
    if (!placeOfTile.has(now.tile)) {
      now.tile = order.reduce((fullest, tile) => total[tile] > total[fullest] ? tile : fullest);
    }
    show();
  });
  by.addEventListener('change', () => {
    now.sorted = by.value === 'fullest';
    arrange();
    show();
  });
  height.addEventListener('change', () => {
    now.isLow = height.value === 'tiles';
    show();
  });
  part('tile').addEventListener('input', () => {
    const input = /** @type {HTMLInputElement} */ (part('tile'));
    if (input.validity.valid && input.value && ipuOf(input.valueAsNumber) >= 0) choose(input.valueAsNumber);
  });

  part('without').hidden = true;
  part('tool').hidden = false;
  add(ipu, 'option', 'all IPUs').setAttribute('value', '-1');
  data.ipus.forEach((own, place) => add(ipu, 'option', `IPU ${own.ipu}`).setAttribute('value', String(place)));
  if (ipuOf(now.tile) < 0) now.tile = data.ipus[0].first;
  now.ipu = data.ipus.length > 1 ? ipuOf(now.tile) : -1;
  ipu.value = String(now.ipu);
  by.value = 'number';
  height.value = 'limit';
  showLegend();
  arrange();
  show();
  new ResizeObserver(() => {
    if (svg.clientWidth) show();
  }).observe(svg);
})();
