// Drawings over steps, tiles or cycles: axes, zoom, a cursor at the chosen place, keys, and a table of
// the numbers behind each drawing.

/**
 * @typedef {object} Plot
 * @property {string} id
 * @property {string} label
 * @property {string} unit the unit of the horizontal axis, such as `step`; a choice of it moves the cursor
 * @property {number} height
 * @property {number} first the first place on the horizontal axis
 * @property {number} last the last place, inclusive
 * @property {ArrayLike<number>} [places] the places that keys move to; without it, all places
 * @property {() => ?number} value the chosen place
 * @property {(place: number, share?: number) => void} choose chooses a place, at a share of the height if it was clicked
 * @property {(place: number, share: number) => string} said the text about a place, at a share of the height
 * @property {(from: number, to: number) => [number, number]} range the bytes that all places between two have, and the highest bytes there
 * @property {(keyof Choice)[]} [redraws] the keys of the choice on which the drawing depends
 * @property {boolean} [isLow] does the drawing begin without the bytes that all places have?
 * @property {string} [measure] the unit of the vertical axis
 * @property {number} [limit]
 * @property {{at: number, name: string}[]} [marks]
 * @property {() => {from: number, to: number, name: string, isOther: boolean, look?: string}[]} [bands]
 * @property {(inner: Element, scale: Scale) => void} paint
 * @property {(parent: HTMLElement) => void} table
 * @property {(place: number) => string} [named] the label of a place below the drawing
 * @property {string[]} [lanes] the names of rows, from the top; such a drawing has no vertical axis
 */
/** @typedef {{x: (place: number) => number, y: (bytes: number) => number, from: number, to: number,
 *   width: number, top: number, bottom: number, low: number, most: number}} Scale */

/** Round numbers between two numbers, at most `most` of them. @param {number} low @param {number} high @param {number} most */
const ticks = (low, high, most) => {
  const rough = Math.max((high - low) / most, 1);
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = power * ([1, 2, 5, 10].find((own) => own * power >= rough) ?? 10);
  const first = Math.ceil(low / step);
  const count = Math.max(Math.floor(high / step) - first + 1, 0);
  return Array.from({ length: count }, (_, place) => (first + place) * step);
};

/** The width of a letter of a label, in pixels. */
const LETTER = 6.9;

/** @typedef {{x: number, text: string}} Label with its middle */

/** The labels that do not overlap an earlier one, moved into the drawing.
 * @param {Label[]} labels the most important first @param {number} width of the drawing */
const withoutOverlaps = (labels, width) => {
  /** @type {(Label & {half: number})[]} */
  const kept = [];
  for (const { x: middle, text } of labels) {
    const half = text.length * LETTER / 2;
    const x = Math.min(Math.max(middle, half), Math.max(width - half, half));
    if (!kept.some((own) => Math.abs(own.x - x) < half + own.half + 8)) kept.push({ x, text, half });
  }
  return kept;
};

/** Writes labels, without those that would overlap an earlier one. @param {Element} svg
 * @param {Label[]} labels the most important first @param {number} width of the drawing @param {number} y */
const drawLabels = (svg, labels, width, y) => {
  for (const { x, text } of withoutOverlaps(labels, width)) {
    draw(svg, 'text', { class: 'axis', x: `${x / width * 100}%`, y, 'text-anchor': 'middle' }, text);
  }
};

/** The outline of neighbouring columns, as a path. @param {number[]} lefts in pixels
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

/** Both numbers, the lower one first. @param {number} a @param {number} b @returns {[number, number]} */
const inOrder = (a, b) => a < b ? [a, b] : [b, a];

/** The fewest places that a drawing shows. */
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
  /** The part of the vertical axis that is enlarged, if any. @type {?[number, number]} */
  let part = null;
  /** @type {Scale} */
  let now;

  /** The lowest and the highest number of the vertical axis, with a margin. A limit that is near enough is on it.
   * @param {boolean} isOnlyMoving are the bytes left out that all places have? */
  const upwards = (isOnlyMoving) => {
    const [base, highest] = plot.range(from, to);
    const low = isOnlyMoving ? Math.max(base - (highest - base) * .1, 0) : 0;
    const { limit: own = 0 } = plot;
    const isNear = own < low + (highest - low) * 1.6;
    return [low, low + Math.max((isNear ? Math.max(own, highest) : highest) - low, 1) * 1.06];
  };

  const show = () => {
    const width = Math.max(svg.clientWidth, 50);
    const [low, most] = part ?? upwards(isLow);
    now = {
      from, to, width, top: TOP, bottom: BOTTOM, low, most,
      x: (place) => (place - from) / (to + 1 - from) * width,
      y: (bytes) => round(Math.min(Math.max(TOP + (BOTTOM - TOP) * (1 - (bytes - low) / (most - low)), TOP - 6), BOTTOM)),
    };
    svg.replaceChildren();
    drawScale();
    const inner = draw(svg, 'svg', {
      width: '100%', height: plot.height, viewBox: `0 0 ${width} ${plot.height}`, preserveAspectRatio: 'none',
    });
    drawBands(inner);
    plot.paint(inner, now);
    const own = limit();
    if (own !== null) draw(svg, 'line', { class: 'limit', x1: 0, x2: '100%', y1: now.y(own), y2: now.y(own) });
    drawMarks();
    drawPlaces();
    draw(svg, 'line', { class: 'cursor', y1: TOP - 4, y2: BOTTOM });
    draw(draw(svg, 'svg', { class: 'pointer' }), 'path', { d: `M-5 ${BOTTOM + 8}h10l-5 -8Z` });
    showCursor();
    for (const { button, isOff } of buttons) button.disabled = isOff();
    vertical?.setAttribute('aria-pressed', String(isLow && !part));
  };

  /** Is the limit within the drawing? */
  const limit = () => plot.limit !== undefined && plot.limit >= now.low && plot.limit <= now.most ? plot.limit : null;

  const drawScale = () => {
    scale.replaceChildren();
    /** @param {number} y @param {string} text @param {string} [look] */
    const name = (y, text, look = 'axis') => draw(scale, 'text', { class: look, x: '100%', y: y + 4, 'text-anchor': 'end' }, text);
    plot.lanes?.forEach((own, row, all) => name(TOP + (BOTTOM - TOP) * (row + .5) / all.length, own));
    if (plot.lanes) return;
    const own = limit();
    if (own !== null) name(now.y(own), grouped(own), 'limit-text');
    for (const bytes of ticks(now.low, now.most, 5)) {
      const y = now.y(bytes);
      draw(svg, 'line', { class: 'grid', x1: 0, x2: '100%', y1: y, y2: y });
      if (own === null || Math.abs(now.y(own) - y) >= 15) name(y, grouped(bytes));
    }
    name(plot.height - 6, plot.measure ?? 'bytes', 'unit');
  };

  /** @param {Element} inner */
  const drawBands = (inner) => {
    const visible = (plot.bands?.() ?? []).filter((own) => own.to >= from && own.from <= to);
    const labels = visible.map((own) => {
      const [left, right] = [Math.max(now.x(own.from), 0), Math.min(now.x(own.to + 1), now.width)];
      draw(inner, 'rect', {
        class: own.look ?? (own.isOther ? 'band other' : 'band'), x: round(left), width: round(Math.max(right - left, .5)),
        y: lanes - 18, height: BOTTOM - lanes + 18,
      });
      return { x: (left + right) / 2, text: short(printable(own.name), 14), room: right - left };
    });
    drawLabels(svg, labels.sort((a, b) => Math.round(b.room - a.room)), now.width, lanes - 5);
  };

  const drawMarks = () => {
    const visible = (plot.marks ?? []).filter((own) => own.at >= from && own.at <= to);
    for (const own of visible) {
      const x = `${now.x(own.at) / now.width * 100}%`;
      draw(svg, 'line', { class: 'mark', x1: x, x2: x, y1: 16, y2: BOTTOM });
    }
    drawLabels(svg, visible.map((own) => ({ x: now.x(own.at), text: own.name })), now.width, 12);
  };

  const drawPlaces = () => {
    const named = plot.named ?? grouped;
    const labels = (/** @type {number} */ most) => ticks(from, to, most).filter(Number.isInteger).map((place, number) => ({
      x: now.x(place + .5), text: number ? named(place) : `${plot.unit} ${named(place)}`,
    }));
    // As many ticks as have room for a label each, so that all distances are equal.
    let most = Math.max(Math.floor(now.width / 70), 2);
    while (most > 1 && withoutOverlaps(labels(most), now.width).length < labels(most).length) most--;
    drawLabels(svg, labels(most), now.width, plot.height - 2);
  };

  const showCursor = () => {
    const place = plot.value();
    const own = place ?? from;
    const visibility = place !== null && place >= from && place <= to ? 'visible' : 'hidden';
    const x = `${now.x(own + .5) / now.width * 100}%`;
    set(/** @type {Element} */ (svg.querySelector('.cursor')), { visibility, x1: x, x2: x });
    set(/** @type {Element} */ (svg.querySelector('.pointer')), { visibility, x });
    set(svg, {
      'aria-valuemin': plot.first, 'aria-valuemax': plot.last, 'aria-valuenow': own, 'aria-valuetext': printable(plot.said(own, 1)),
    });
  };

  /** Shows `count` places from `first` on, or the fewest that can be shown. @param {number} first @param {number} count */
  const zoom = (first, count) => {
    const all = plot.last - plot.first + 1;
    count = Math.min(Math.max(Math.round(count), Math.min(FEWEST, all)), all);
    from = Math.min(Math.max(Math.round(first), plot.first), plot.last + 1 - count);
    to = from + count - 1;
    show();
  };

  /** @param {number} factor @param {?number} [around] */
  const zoomBy = (factor, around = plot.value()) => {
    const middle = around !== null && around >= from && around <= to ? around : (from + to) / 2;
    const count = (to - from + 1) * factor;
    zoom(middle - count / 2, count);
  };

  /** Enlarges a part of the vertical axis; shows all of it if the part is not smaller. @param {number} low @param {number} high */
  const enlarge = (low, high) => {
    const [least, most] = upwards(false);
    const count = Math.max(high - low, 16);
    const start = Math.min(Math.max(low, least), most - count);
    part = plot.lanes || count >= most - least ? null : [start, start + count];
    show();
  };

  /** @param {number} factor @param {number} [around] */
  const enlargeBy = (factor, around = (now.low + now.most) / 2) =>
    enlarge(around - (around - now.low) * factor, around + (now.most - around) * factor);

  /** Shows the whole vertical axis, or leaves out the bytes that all places have. @param {boolean} low */
  const setLow = (low) => {
    [isLow, part] = [low, null];
    show();
  };

  /** Scrolls to the chosen place, if there is one. */
  const reveal = () => {
    const own = plot.value() ?? from;
    if (own >= from && own <= to) showCursor(); else zoom(own - (to - from) / 2, to - from + 1);
  };

  /** @typedef {{clientX: number, clientY: number}} Point of a pointer */
  /** The place under the pointer, with fractions. @param {Point} point */
  const placeAt = (point) => from + sharesOf(svg, point)[0] * (to + 1 - from);
  /** The bytes at the height of the pointer. @param {Point} point */
  const heightAt = ({ clientY }) =>
    now.low + (now.most - now.low) * (1 - (clientY - svg.getBoundingClientRect().top - TOP) / (BOTTOM - TOP));
  /** @param {Point} point */
  const under = (point) => Math.min(Math.floor(placeAt(point)), to);

  const isTall = !plot.lanes && upwards(true)[0] > 0;
  const isWhole = () => from === plot.first && to === plot.last;
  /** What keys do, and buttons, which some drawings lack. */
  const changes = [
    { name: 'Zoom in', id: 'in', keys: ['+', '='], make: () => zoomBy(.5), isOff: () => to - from < FEWEST },
    { name: 'Zoom out', id: 'out', keys: ['-'], make: () => zoomBy(2), isOff: isWhole },
    { name: 'Taller', id: 'taller', keys: ['t'], make: () => enlargeBy(.5), isOff: () => false, isThere: isTall },
    { name: 'Flatter', id: 'flatter', keys: ['f'], make: () => enlargeBy(2), isOff: () => !part, isThere: isTall },
    { name: 'Whole', id: 'whole', keys: ['0'], make: () => { part = null; zoom(plot.first, Infinity); }, isOff: () => isWhole() && !part },
  ];
  svg.addEventListener('keydown', (event) => {
    if (!isPlain(event)) return;
    const own = plot.value() ?? from;
    const { places } = plot;
    const [first, last] = places ? [0, places.length - 1] : [plot.first, plot.last];
    const far = Math.max(Math.round((places ? last + 1 : to - from + 1) / 10), 1);
    const goal = goalOf(event, places ? placeOf(places, own) : own, far, first, last);
    const up = { ArrowUp: .25, ArrowDown: -.25 }[event.key];
    const change = changes.find(({ keys }) => keys.includes(event.key));
    if (event.shiftKey && up && part) enlarge(now.low + up * (now.most - now.low), now.most + up * (now.most - now.low));
    else if (goal !== undefined) plot.choose(places ? places[goal] : goal);
    else if (change) change.make();
    else return;
    event.preventDefault();
  });
  /** The point, place and height at which the mouse button went down. @type {?{point: MouseEvent, place: number, height: number}} */
  let down = null;
  let isDragged = false;
  /** The places and heights over which the mouse is dragged, if it is dragged far along or upwards. @param {MouseEvent} event */
  const dragged = (event) => {
    if (!down) return {};
    const [x, y] = [event.clientX - down.point.clientX, event.clientY - down.point.clientY].map(Math.abs);
    return {
      along: x > 12 ? inOrder(down.place, placeAt(event)) : undefined,
      up: y > 40 && !plot.lanes ? inOrder(down.height, heightAt(event)) : undefined,
    };
  };
  svg.addEventListener('pointerdown', (event) => {
    isDragged = false;
    down = event.pointerType === 'mouse' ? { point: event, place: placeAt(event), height: heightAt(event) } : null;
  });
  svg.addEventListener('pointerup', (event) => {
    const { along, up } = dragged(event);
    [down, isDragged] = [null, !!along || !!up];
    svg.querySelector('.dragged')?.remove();
    if (up) enlarge(...up);
    if (along) zoom(along[0], along[1] - along[0]);
  });
  svg.addEventListener('click', (event) => {
    if (!isDragged) plot.choose(under(event), sharesOf(svg, event)[1]);
  });
  svg.addEventListener('pointermove', (event) => {
    const { along, up } = dragged(event);
    svg.querySelector('.dragged')?.remove();
    if (along || up) {
      const [left, right] = along?.map(now.x) ?? [0, now.width];
      const [low, high] = (up ?? [now.low, now.most]).map(now.y);
      draw(svg, 'rect', { class: 'dragged', x: left, width: right - left, y: high, height: low - high });
    }
    svg.dataset.tip = plot.said(under(event), sharesOf(svg, event)[1]);
  });
  svg.addEventListener('wheel', (event) => {
    if (!event.ctrlKey) return;
    event.preventDefault();
    const factor = event.deltaY < 0 ? .8 : 1.25;
    if (event.shiftKey) enlargeBy(factor, heightAt(event)); else zoomBy(factor, under(event));
  }, { passive: false });
  // The places under two fingers stay under them. If one finger is above the other, the heights do.
  /** The places, or the heights, under the fingers. @type {?{isUp: boolean, held: number[]}} */
  let fingers = null;
  svg.addEventListener('touchstart', ({ touches: [one, other, more] }) => {
    if (!other || more) return void (fingers = null);
    const isUp = !plot.lanes && Math.abs(one.clientY - other.clientY) > Math.abs(one.clientX - other.clientX);
    fingers = { isUp, held: [one, other].map(isUp ? heightAt : placeAt) };
  }, { passive: true });
  svg.addEventListener('touchmove', (event) => {
    if (!fingers || event.touches.length !== 2) return;
    event.preventDefault();
    const { isUp, held } = fingers;
    const [one, other] = [...event.touches].map(isUp ? heightAt : placeAt);
    const factor = (held[0] - held[1]) / (one - other);
    if (!(factor > 0 && factor < Infinity)) return;
    const [first, count] = [held[0] - (one - (isUp ? now.low : from)) * factor, (isUp ? now.most - now.low : to + 1 - from) * factor];
    if (isUp) enlarge(first, first + count); else zoom(first, count);
  }, { passive: false });

  tools.hidden = !isTall && to - from < FEWEST;
  const buttons = changes.filter(({ isThere }) => isThere ?? true)
    .map(({ name, id, make, isOff }) => ({ button: addButton(tools, name, make, `${plot.id}-${id}`), isOff }));
  const vertical = isTall ? addButton(tools, 'Enlarge what changes', () => setLow(part ? isLow : !isLow), `${plot.id}-low`) : null;
  addFolded(figure, `Table: ${plot.label[0].toLowerCase()}${plot.label.slice(1)}`, plot.table);
  follow(plot.redraws ?? [], show, svg);
  follow([/** @type {keyof Choice} */ (plot.unit)], reveal, svg);
  onResize(svg, show);
  return { show, setLow, tools, figure, svg };
};
