// Drawings over steps, tiles or cycles: axes, zoom, a cursor that is what is chosen, keys,
// and a table behind each.

/**
 * @typedef {object} Plot
 * @property {string} id
 * @property {string} label
 * @property {string} unit what is along the drawing, such as `step`
 * @property {number} height
 * @property {number} first the first place along the drawing
 * @property {number} last the last, inclusive
 * @property {ArrayLike<number>} [places] where keys go; everywhere without
 * @property {() => ?number} value the place that is chosen
 * @property {(place: number) => void} choose
 * @property {(place: number, share: number) => string} said about a place, at a share of the height
 * @property {(from: number, to: number, isLow: boolean) => [number, number]} range of what is
 *   upwards, between two places; `isLow` leaves out what is the same everywhere
 * @property {boolean} [isLow] is that left out at first?
 * @property {number} [limit]
 * @property {{at: number, name: string}[]} [marks]
 * @property {() => {from: number, to: number, name: string, isOther: boolean, look?: string}[]} [bands]
 * @property {(inner: Element, scale: Scale) => void} paint
 * @property {(parent: HTMLElement) => void} table
 * @property {(place: number) => string} [named] the label of a place below the drawing
 * @property {string} [follows] what moves the cursor, if not the unit
 * @property {string[]} [lanes] the names of rows, from above; then nothing is measured upwards
 */
/** @typedef {{x: (place: number) => number, y: (bytes: number) => number, from: number, to: number,
 *   width: number, top: number, bottom: number, low: number, most: number}} Scale */

/** Round numbers between two numbers, at most `most` of them. @param {number} low
 * @param {number} high @param {number} most */
const ticks = (low, high, most) => {
  const rough = Math.max((high - low) / most, 1);
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = power * ([1, 2, 5, 10].find((own) => own * power >= rough) ?? 10);
  const first = Math.ceil(low / step);
  const count = Math.max(Math.floor(high / step) - first + 1, 0);
  return Array.from({ length: count }, (_, place) => (first + place) * step);
};

/** So many pixels a letter of a label takes. */
const LETTER = 6.9;

/** Leaves out labels that would stand in one before them. @template {{x: number, text: string}} T
 * @param {T[]} labels the most important first, each with its middle @param {number} width of the drawing */
const apart = (labels, width) => {
  /** @type {T[]} */
  const kept = [];
  const halfOf = (/** @type {T} */ own) => own.text.length * LETTER / 2;
  for (const own of labels) {
    const half = halfOf(own);
    own.x = Math.min(Math.max(own.x, half), Math.max(width - half, half));
    if (kept.every((one) => Math.abs(one.x - own.x) >= half + halfOf(one) + 8)) kept.push(own);
  }
  return kept;
};

/** The outline over heights of neighbouring columns, as a path. @param {number[]} lefts in pixels
 * @param {number[]} tops @param {number} right @param {number} base */
const outline = (lefts, tops, right, base) => {
  let path = '', before = base;
  tops.forEach((top, place) => {
    if (!place) path = `M${round(lefts[0])} ${base}`;
    if (top === before) return;
    path += `H${round(lefts[place])}V${top}`;
    before = top;
  });
  return path && `${path}H${round(right)}V${base}Z`;
};

/** @param {number} number */
const round = (number) => Math.round(number * 100) / 100;

/** The most pixels in which places are drawn. */
const FEWEST = 8;

/** @param {Element} parent @param {Plot} plot */
const addPlot = (parent, plot) => {
  const figure = addAs(parent, 'figure', plot.id);
  const tools = add(figure, 'div', '', 'tools');
  const box = add(figure, 'div', '', 'plot');
  const scale = draw(box, 'svg', { class: 'scale', height: plot.height, 'aria-hidden': 'true' });
  const svg = /** @type {SVGSVGElement} */ (draw(box, 'svg', {
    height: plot.height, tabindex: 0, role: 'slider', 'aria-label': plot.label, class: 'drawn', id: `${plot.id}-chart`,
  }));
  const lanes = (plot.marks?.length ? 18 : 0) + (plot.bands?.().length ? 18 : 0);
  const TOP = lanes + 8, BOTTOM = plot.height - 24;
  let [from, to, isLow] = [plot.first, plot.last, !!plot.isLow];
  /** What of the height is enlarged, if any of it. @type {?[number, number]} */
  let part = null;
  /** @type {Scale} */
  let now;

  /** The lowest and the highest of what is upwards, with some room. @param {boolean} [isAll] */
  const upwards = (isAll) => {
    const [low, high] = plot.range(from, to, !isAll && isLow);
    return [low, low + Math.max(high - low, 1) * 1.06];
  };

  const show = () => {
    const width = Math.max(svg.clientWidth, 50);
    const [low, most] = part ?? upwards();
    now = {
      from, to, width, top: TOP, bottom: BOTTOM, low, most,
      x: (place) => (place - from) / (to + 1 - from) * width,
      y: (bytes) => round(Math.min(Math.max(TOP + (BOTTOM - TOP) * (1 - (bytes - low) / (most - low)), TOP - 6), BOTTOM)),
    };
    svg.replaceChildren();
    drawScale(low, most);
    const inner = draw(svg, 'svg', {
      width: '100%', height: plot.height, viewBox: `0 0 ${width} ${plot.height}`, preserveAspectRatio: 'none',
    });
    drawBands(inner);
    plot.paint(inner, now);
    drawLimit(low, most);
    drawMarks();
    drawPlaces();
    draw(svg, 'line', { class: 'cursor', y1: TOP - 4, y2: BOTTOM });
    draw(draw(svg, 'svg', { class: 'pointer' }), 'path', { d: `M-5 ${BOTTOM + 8}h10l-5 -8Z` });
    showCursor();
    zoomIn.disabled = to - from < FEWEST;
    zoomOut.disabled = from === plot.first && to === plot.last;
    whole.disabled = zoomOut.disabled && !part;
    if (flatter) flatter.disabled = !part;
    vertical?.setAttribute('aria-pressed', String(isLow && !part));
  };

  /** @param {number} low @param {number} most */
  const drawScale = (low, most) => {
    scale.replaceChildren();
    const { limit, lanes: rows } = plot;
    (rows ?? []).forEach((name, row) => draw(scale, 'text', {
      class: 'axis', x: '100%', 'text-anchor': 'end', y: TOP + (BOTTOM - TOP) * (row + .5) / (rows?.length ?? 1) + 4,
    }, name));
    if (rows) return;
    const isIn = limit !== undefined && limit >= low && limit <= most;
    for (const bytes of ticks(low, most, 5)) {
      const y = now.y(bytes);
      draw(svg, 'line', { class: 'grid', x1: 0, x2: '100%', y1: y, y2: y });
      if (isIn && Math.abs(now.y(/** @type {number} */ (limit)) - y) < 15) continue;
      draw(scale, 'text', { class: 'axis', x: '100%', y: y + 4, 'text-anchor': 'end' }, grouped(bytes));
    }
  };

  /** @param {number} low @param {number} most */
  const drawLimit = (low, most) => {
    const { limit } = plot;
    if (limit === undefined || limit < low || limit > most) return;
    const y = now.y(limit);
    draw(svg, 'line', { class: 'limit', x1: 0, x2: '100%', y1: y, y2: y });
    draw(scale, 'text', { class: 'limit-text', x: '100%', y: y + 4, 'text-anchor': 'end' }, grouped(limit));
  };

  /** @param {Element} inner */
  const drawBands = (inner) => {
    const visible = (plot.bands?.() ?? []).filter((own) => own.to >= from && own.from <= to);
    const labels = visible.map((own) => {
      const [left, right] = [Math.max(now.x(own.from), 0), Math.min(now.x(own.to + 1), now.width)];
      draw(inner, 'rect', { class: own.look ?? (own.isOther ? 'band other' : 'band'), x: round(left), width: round(Math.max(right - left, .5)), y: lanes - 18, height: BOTTOM - lanes + 18 });
      const text = short(printable(own.name), 14);
      return { x: (left + right) / 2, text, room: right - left };
    });
    for (const own of apart(labels.sort((a, b) => Math.round(b.room - a.room)), now.width)) {
      draw(svg, 'text', { class: 'axis', x: `${own.x / now.width * 100}%`, y: lanes - 5, 'text-anchor': 'middle' }, own.text);
    }
  };

  const drawMarks = () => {
    const visible = (plot.marks ?? []).filter((own) => own.at >= from && own.at <= to);
    for (const own of visible) {
      const x = `${now.x(own.at) / now.width * 100}%`;
      draw(svg, 'line', { class: 'mark', x1: x, x2: x, y1: 16, y2: BOTTOM });
    }
    const labels = visible.map((own) => ({ x: now.x(own.at), text: own.name }));
    for (const own of apart(labels, now.width)) {
      draw(svg, 'text', { class: 'axis', x: `${own.x / now.width * 100}%`, y: 12, 'text-anchor': 'middle' }, own.text);
    }
  };

  const drawPlaces = () => {
    const named = plot.named ?? grouped;
    const all = ticks(from, to, Math.max(Math.floor(now.width / 110), 2)).filter(Number.isInteger);
    const labels = all.map((place) => ({ x: now.x(place + 0.5), text: named(place) }));
    if (labels.length) labels[0].text = `${plot.unit} ${labels[0].text}`;
    for (const own of apart(labels, now.width)) {
      draw(svg, 'text', { class: 'axis', x: `${own.x / now.width * 100}%`, y: plot.height - 2, 'text-anchor': 'middle' }, own.text);
    }
  };

  const showCursor = () => {
    const place = plot.value();
    const [line, pointer] = [svg.querySelector('.cursor'), svg.querySelector('.pointer')];
    const isVisible = place !== null && place >= from && place <= to;
    for (const one of [line, pointer]) one?.setAttribute('visibility', isVisible ? 'visible' : 'hidden');
    const own = place ?? from;
    const x = `${now.x(own + 0.5) / now.width * 100}%`;
    for (const name of ['x1', 'x2']) line?.setAttribute(name, x);
    pointer?.setAttribute('x', x);
    svg.setAttribute('aria-valuemin', String(plot.first));
    svg.setAttribute('aria-valuemax', String(plot.last));
    svg.setAttribute('aria-valuenow', String(own));
    svg.setAttribute('aria-valuetext', printable(plot.said(own, 1)));
  };

  /** Shows these places, at least a few. @param {number} first @param {number} count */
  const zoom = (first, count) => {
    const all = plot.last - plot.first + 1;
    count = Math.min(Math.max(Math.round(count), Math.min(FEWEST, all)), all);
    from = Math.min(Math.max(Math.round(first), plot.first), plot.last + 1 - count);
    to = from + count - 1;
    show();
  };

  /** @param {number} factor @param {number} [around] */
  const zoomBy = (factor, around) => {
    const value = around ?? plot.value();
    const middle = value !== null && value >= from && value <= to ? value : (from + to) / 2;
    const count = (to - from + 1) * factor;
    zoom(middle - count / 2, count);
  };

  /** Enlarges a part of the height; all of it where the part is no smaller. @param {number} low @param {number} high */
  const enlarge = (low, high) => {
    const [least, most] = upwards(true);
    const count = Math.max(high - low, 16);
    const start = Math.min(Math.max(low, least), most - count);
    part = plot.lanes || count >= most - least ? null : [start, start + count];
    show();
  };

  /** @param {number} factor @param {number} [around] */
  const enlargeBy = (factor, around = (now.low + now.most) / 2) =>
    enlarge(around - (around - now.low) * factor, around + (now.most - around) * factor);

  /** How many bytes high the pointer is. @param {MouseEvent} event */
  const heightOf = (event) => {
    const y = event.clientY - svg.getBoundingClientRect().top;
    return now.low + (now.most - now.low) * (1 - (y - TOP) / (BOTTOM - TOP));
  };

  const showWhole = () => {
    part = null;
    zoom(plot.first, Infinity);
  };

  /** Shows a place that may be out of sight. @param {number} place */
  const reveal = (place) => {
    if (place >= from && place <= to) showCursor(); else zoom(place - (to - from) / 2, to - from + 1);
  };

  /** @param {MouseEvent} event */
  const under = (event) => Math.min(from + Math.floor(shareOf(svg, event) * (to + 1 - from)), to);

  svg.addEventListener('keydown', (event) => {
    if (!isPlain(event)) return;
    const own = plot.value() ?? from;
    const { places } = plot;
    const [first, last] = places ? [0, places.length - 1] : [plot.first, plot.last];
    const place = places ? placeOf(places, own) : own;
    const far = Math.max(Math.round((places ? last + 1 : to - from + 1) / 10), 1);
    const goal = goalOf(event, place, far, first, last);
    const up = { ArrowUp: 1, ArrowDown: -1 }[event.key];
    if (event.shiftKey && up && part) enlarge(now.low + up * (now.most - now.low) / 4, now.most + up * (now.most - now.low) / 4);
    else if (goal !== undefined) plot.choose(places ? places[goal] : goal);
    else if (event.key === '+' || event.key === '=') zoomBy(0.5);
    else if (event.key === '-') zoomBy(2);
    else if (event.key === 't') enlargeBy(0.5);
    else if (event.key === 'f') enlargeBy(2);
    else if (event.key === '0') showWhole();
    else return;
    event.preventDefault();
  });
  /** Where the mouse went down. @type {?MouseEvent} */
  let down = null;
  let isDragged = false;
  /** What is dragged over: places, and heights where it is high enough. @param {MouseEvent} event */
  const dragged = (event) => {
    if (!down || Math.hypot(event.clientX - down.clientX, event.clientY - down.clientY) <= 12) return null;
    const box = svg.getBoundingClientRect();
    const [left, right] = [down.clientX, event.clientX].sort((a, b) => a - b).map((x) => x - box.left);
    const [top, bottom] = Math.abs(event.clientY - down.clientY) > 40 && !plot.lanes
      ? [down.clientY, event.clientY].sort((a, b) => a - b).map((y) => y - box.top) : [TOP, BOTTOM];
    return { left, right, top, bottom };
  };
  svg.addEventListener('pointerdown', (event) => {
    isDragged = false;
    down = event.pointerType === 'mouse' ? event : null;
  });
  svg.addEventListener('pointerup', (event) => {
    const own = dragged(event);
    const start = down;
    down = null;
    svg.querySelector('.dragged')?.remove();
    if (!own || !start) return;
    isDragged = true;
    if (own.bottom - own.top < BOTTOM - TOP) enlarge(...(/** @type {[number, number]} */ ([start, event].map(heightOf).sort((a, b) => a - b))));
    if (own.right - own.left > 12) zoom(from + own.left / now.width * (to + 1 - from), (own.right - own.left) / now.width * (to + 1 - from));
  });
  svg.addEventListener('click', (event) => {
    if (!isDragged) plot.choose(under(event));
  });
  svg.addEventListener('pointermove', (event) => {
    const box = svg.getBoundingClientRect();
    const own = dragged(event);
    svg.querySelector('.dragged')?.remove();
    if (own) draw(svg, 'rect', { class: 'dragged', x: own.left, width: own.right - own.left, y: own.top, height: own.bottom - own.top });
    svg.dataset.tip = plot.said(under(event), Math.min(Math.max((event.clientY - box.top) / box.height, 0), 1));
  });
  svg.addEventListener('wheel', (event) => {
    if (!event.ctrlKey) return;
    event.preventDefault();
    const factor = event.deltaY < 0 ? 0.8 : 1.25;
    if (event.shiftKey) enlargeBy(factor, heightOf(event)); else zoomBy(factor, under(event));
  }, { passive: false });

  const [lowest, highest] = [upwards(true)[0], plot.range(from, to, true)[0]];
  const isTall = !plot.lanes && lowest !== highest;
  tools.hidden = !isTall && to - from < FEWEST;
  const zoomIn = addButton(tools, 'Zoom in', () => zoomBy(0.5), `${plot.id}-in`);
  const zoomOut = addButton(tools, 'Zoom out', () => zoomBy(2), `${plot.id}-out`);
  if (isTall) addButton(tools, 'Taller', () => enlargeBy(0.5), `${plot.id}-taller`);
  const flatter = isTall ? addButton(tools, 'Flatter', () => enlargeBy(2), `${plot.id}-flatter`) : null;
  const whole = addButton(tools, 'Whole', showWhole, `${plot.id}-whole`);
  const vertical = isTall ? addButton(tools, 'Enlarge what changes', () => setLow(part ? isLow : !isLow), `${plot.id}-low`) : null;
  addFolded(figure, `Table: ${plot.label[0].toLowerCase()}${plot.label.slice(1)}`, plot.table);
  onChoice([/** @type {keyof Choice} */ (plot.follows ?? plot.unit)], () => {
    const own = plot.value();
    if (own !== null) reveal(own); else showCursor();
  }, svg);
  show();
  if (plot.value() !== null) reveal(/** @type {number} */ (plot.value()));
  onResize(svg, show);
  /** Shows the whole height, or what changes of it. @param {boolean} low */
  const setLow = (low) => {
    [isLow, part] = [low, null];
    show();
  };
  return { show, setLow, tools, figure, svg };
};

/** What is said of a layer in a drawing. @param {Json.LayerMemory} own */
const saidOfLayer = (own) => `${layerName(own.name)}\n${grouped(own.total)} bytes over all tiles\n${grouped(own.fullest_tile_bytes)} on its fullest, tile ${own.fullest_tile}`;

/** Layers side by side, each of parts that are stacked. @param {Element} parent
 * @param {{id: string, label: string, names: (?string | undefined)[], parts: (place: number) => {look: string, bytes: number}[],
 *   total: (place: number) => number, said: (place: number) => string, table: (inner: HTMLElement) => void}} own */
const addLayerPlot = (parent, { id, label, names, parts, total, said, table }) => addPlot(parent, {
  id, label, unit: 'layer', height: 240, first: 0, last: Math.max(names.length - 1, 0),
  named: (place) => short(printable(layerName(names[place])), 10),
  bands: stageBands,
  value: () => chosen.layer, choose: (layer) => choose({ layer }), said, table,
  range: (from, to) => [0, Math.max(...names.slice(from, to + 1).map((_, place) => total(from + place)), 1)],
  paint: (inner, scale) => {
    for (let place = scale.from; place <= scale.to; place++) {
      const [x, width] = [round(scale.x(place + .08)), round(Math.max(scale.x(place + .92) - scale.x(place + .08), .5))];
      let sum = 0;
      for (const own of parts(place)) {
        const top = scale.y(sum + own.bytes);
        draw(inner, 'rect', { class: own.look, x, width, y: top, height: round(scale.y(sum) - top) });
        sum += own.bytes;
      }
    }
  },
});

/** The layers over the steps as bands. @param {(band: Json.Band) => boolean} [isMeant] */
const layerBands = (isMeant = () => true) => (report.liveness?.bands ?? []).filter(isMeant)
  .map((own) => {
    const place = report.layers.findIndex((layer) => layer.name === own.layer);
    const stage = stageOfPosition(place);
    const isOther = (stage < 0 ? place : stage) % 2 === 1;
    return { from: own.from, to: own.to, name: layerName(own.layer), isOther, look: place === chosen.layer ? 'band is-chosen' : undefined };
  });

/** The stages over the positions of layers as bands. */
const stageBands = () => (report.split?.stages ?? []).map(({ positions, stage }) => ({
  from: positions.start, to: positions.end - 1, name: `IPU ${stage}`, isOther: stage % 2 === 1,
}));

/** Where the backward pass begins. */
const passMarks = () => typeof report.liveness?.turn === 'number'
  ? [{ at: report.liveness.turn, name: 'backward pass' }] : [];

/** A curve over the steps. @param {Element} parent @param {string} id @param {string} label
 * @param {?Json.Curve | undefined} curve @param {string} pointer @param {number} [limit] @param {(band: Json.Band) => boolean} [isMeant] which bands are shown */
const addCurve = (parent, id, label, curve, pointer, limit, isMeant) => {
  if (!curve || isHuge) return;
  const { first_step: first, last_step: last, fixed, always_live: always, steps, bytes, peak } = curve;
  const base = fixed + always;
  const visible = (/** @type {number} */ from, /** @type {number} */ to) => {
    const [start, end] = [placeOf(steps, from), placeOf(steps, to)];
    return [...steps.keys()].slice(start, end + 1);
  };
  const isFlat = peak.bytes - base < peak.bytes / 4;
  addPlot(parent, {
    id, label, unit: 'step', height: 250, first, last, limit, isLow: isFlat,
    bands: () => layerBands(isMeant), marks: passMarks(),
    value: () => chosen.step, choose: (step) => choose({ step }),
    said: (step) => `step ${grouped(step)}\n${grouped(bytesAt(curve, step))} bytes`
      + (limit ? `\n${ofLimit(bytesAt(curve, step), limit)} of the limit` : ''),
    range: (from, to, low) => {
      const own = visible(from, to).map((place) => bytes[place]);
      const highest = Math.max(...own, 0) + base;
      if (low) return [Math.max(base - (highest - base) * .1, 0), highest];
      return [0, limit && limit < highest * 1.6 ? Math.max(limit, highest) : highest];
    },
    paint: (inner, scale) => {
      const places = visible(scale.from, scale.to);
      const lefts = places.map((place) => Math.max(scale.x(steps[place]), 0));
      const layers = /** @type {[string, (place: number) => number][]} */ ([
        ['curve', (place) => base + bytes[place]], ['always', () => base], ['overhead', () => fixed],
      ]);
      for (const [look, height] of layers) {
        draw(inner, 'path', { class: look, d: outline(lefts, places.map((place) => scale.y(height(place))), scale.width, scale.bottom) });
      }
      const [x, y] = [scale.x(peak.step + .5), scale.y(peak.bytes)];
      if (x >= 0 && x <= scale.width) draw(inner, 'circle', { class: 'dot', cx: round(x), cy: y, r: 3.5 });
    },
    table: (inner) => {
      const columns = columnsOf([['From step', 'count', ''], ['Bytes', 'bytes', ''], ['Not always live', 'bytes', `${pointer}/bytes/{}`]]);
      const rows = steps.map((/** @type {number} */ step, /** @type {number} */ place) => ({ at: String(place), cells: [step, base + bytes[place], bytes[place]] }));
      addTable(inner, label, columns, rows, { most: 40, choose: (row) => choose({ step: row.cells[0] }) });
    },
  });
  addLine(byId(id), 'figcaption', ['Highest at step ', [peak.step, `${pointer}/peak/step`], ' with ', [peak.bytes, `${pointer}/peak/bytes`],
    ' bytes, of which ', [always, `${pointer}/always_live`], ' are always live',
    ...(fixed ? /** @type {[string, [number, string], string]} */ ([' and ', [fixed, `${pointer}/fixed`], ' are code and the like']) : []),
    `.${limit ? ` The limit is ${grouped(limit)}, ${grouped(Math.abs(limit - peak.bytes))} ${limit < peak.bytes ? 'below' : 'above'} that.` : ''}`]);
};
