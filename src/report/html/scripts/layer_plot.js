// Plots of layers side by side and of curves over steps, drawn by `plot.js`.

/** The text about a layer in a drawing. @param {Json.LayerMemory} own */
const saidOfLayer = (own) => `${layerName(own.name)}\n${grouped(own.total)} bytes over all tiles\n${grouped(own.fullest_tile_bytes)} on its fullest, tile ${own.fullest_tile}`;

/** Draws layers side by side, each as a stack of parts. @param {Element} parent
 * @param {Pick<Plot, 'id' | 'label' | 'said' | 'table' | 'measure'> & {names: (?string | undefined)[],
 *   parts: (place: number) => {look: string, bytes: number}[], total: (place: number) => number}} own */
const addLayerPlot = (parent, { names, parts, total, ...own }) => addPlot(parent, {
  ...own, unit: 'layer', height: 240, first: 0, last: Math.max(names.length - 1, 0),
  named: (place) => short(printable(layerName(names[place])), 10),
  bands: () => (report.split?.stages ?? []).map(({ positions, stage }) => ({
    from: positions.start, to: positions.end - 1, name: `IPU ${stage}`, isOther: stage % 2 === 1,
  })),
  value: () => chosen.layer, choose: (layer) => choose({ layer }),
  range: (from, to) => [0, Math.max(...names.slice(from, to + 1).map((_, place) => total(from + place)), 1)],
  paint: (inner, scale) => {
    for (let place = scale.from; place <= scale.to; place++) {
      const [x, width] = [round(scale.x(place + .08)), round(Math.max(scale.x(place + .92) - scale.x(place + .08), .5))];
      let sum = 0;
      for (const { look, bytes } of parts(place)) {
        const top = scale.y(sum + bytes);
        draw(inner, 'rect', { class: look, x, width, y: top, height: round(scale.y(sum) - top) });
        sum += bytes;
      }
    }
  },
});

/** The steps of each layer, as bands. @param {(band: Json.Band) => boolean} [isMeant] */
const layerBands = (isMeant = () => true) => (report.liveness?.bands ?? []).filter(isMeant).map(({ from, to, layer }) => {
  const place = report.layers.findIndex((own) => own.name === layer);
  const stage = stageOfPosition(place);
  const isOther = (stage < 0 ? place : stage) % 2 === 1;
  return { from, to, name: layerName(layer), isOther, look: place === chosen.layer ? 'band is-chosen' : undefined };
});

/** The mark at which the backward pass begins. */
const passMarks = () => typeof report.liveness?.turn === 'number' ? [{ at: report.liveness.turn, name: 'backward pass' }] : [];

/** Draws a curve over the steps. @param {Element} parent @param {string} id @param {string} label
 * @param {Json.Curve} curve @param {string} pointer @param {number} [limit]
 * @param {(band: Json.Band) => boolean} [isMeant] is a band shown? */
const addCurve = (parent, id, label, curve, pointer, limit, isMeant) => {
  if (isHuge) return;
  const { first_step: first, last_step: last, fixed, always_live: always, steps, bytes, peak } = curve;
  const base = fixed + always;
  const bytesAt = (/** @type {number} */ step) => base + (bytes[placeOf(steps, step)] ?? 0);
  const { figure } = addPlot(parent, {
    id, label, unit: 'step', height: 250, first, last, limit, isLow: peak.bytes - base < peak.bytes / 4,
    bands: () => layerBands(isMeant), marks: passMarks(), value: () => chosen.step, choose: (step) => choose({ step }),
    said: (step) => `step ${grouped(step)}\n${grouped(bytesAt(step))} bytes${limit ? `\n${ofLimit(bytesAt(step), limit)} of the limit` : ''}`,
    range: (from, to) => [base, Math.max(...bytes.slice(placeOf(steps, from), placeOf(steps, to) + 1), 0) + base],
    paint: (inner, { from, to, x, y, width, bottom }) => {
      const [start, end] = [placeOf(steps, from), placeOf(steps, to) + 1];
      const lefts = steps.slice(start, end).map((step) => Math.max(x(step), 0));
      const visible = bytes.slice(start, end);
      for (const [look, tops] of /** @type {[string, number[]][]} */ ([
        ['curve', visible.map((own) => y(base + own))], ['always', visible.map(() => y(base))], ['overhead', visible.map(() => y(fixed))],
      ])) draw(inner, 'path', { class: look, d: outline(lefts, tops, width, bottom) });
      const cx = round(x(peak.step + .5));
      if (cx >= 0 && cx <= width) draw(inner, 'circle', { class: 'dot', cx, cy: y(peak.bytes), r: 3.5 });
    },
    table: (inner) => {
      const columns = columnsOf([['From step', 'count'], ['Bytes', 'bytes'], ['Not always live', 'bytes', `${pointer}/bytes/{}`]]);
      const rows = steps.map((step, place) => ({ at: String(place), cells: [step, base + bytes[place], bytes[place]] }));
      addTable(inner, label, columns, rows, { most: 40, choose: (row) => choose({ step: row.cells[0] }) });
    },
  });
  addLine(figure, 'figcaption', ['Highest at step ', [peak.step, `${pointer}/peak/step`], ' with ', [peak.bytes, `${pointer}/peak/bytes`],
    ' bytes, of which ', [always, `${pointer}/always_live`], ' are always live', fixed && ' and ', fixed && [fixed, `${pointer}/fixed`],
    fixed && ' do not change with the step (code, vertex state, and a stash or accumulators of a pipeline)', `.${limit ? ` The limit is ${grouped(limit)}, ${grouped(Math.abs(limit - peak.bytes))} ${limit < peak.bytes ? 'below' : 'above'} that.` : ''}`]);
};
