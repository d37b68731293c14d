// Layers, each as if it stood alone.

/** The whole view. @param {HTMLElement} parent */
const buildLayers = (parent) => {
  const part = addPart(parent, 'layers', 'Layers');
  const { layers } = report;
  add(part, 'p', 'Each layer as if it stood alone, without what comes with every stage. Choose one to see it everywhere.', 'soft');
  if (!isHuge) {
    addPartsLegend(part, layers.map((own) => own.parts));
    addPlot(part, {
      id: 'layer-bytes', label: 'Bytes of each layer', unit: 'layer', height: 240, first: 0, last: Math.max(layers.length - 1, 0),
      named: (place) => short(printable(layerName(layers[place]?.name ?? null)), 10),
      bands: stageBands,
      value: () => chosen.layer, choose: (layer) => choose({ layer }),
      said: (place) => `${layerName(layers[place].name)}\n${grouped(layers[place].total)} bytes over all tiles\n${grouped(layers[place].fullest_tile_bytes)} on its fullest, tile ${layers[place].fullest_tile}`,
      range: (from, to) => [0, Math.max(...layers.slice(from, to + 1).map((own) => own.total), 1)],
      paint: (inner, scale) => {
        for (let place = scale.from; place <= scale.to; place++) {
          const [x, width] = [round(scale.x(place + .08)), round(Math.max(scale.x(place + .92) - scale.x(place + .08), .5))];
          let sum = 0;
          for (const own of partsOf(layers[place].parts)) {
            const top = scale.y(sum + own.bytes);
            draw(inner, 'rect', { class: own.look, x, width, y: top, height: round(scale.y(sum) - top) });
            sum += own.bytes;
          }
        }
      },
      table: (inner) => addTablesOf(inner, 'layers', ['Layer', 'All tiles', 'Stage'], { most: 30, choose: (_, layer) => choose({ layer }) }),
    });
  }
  addChosenLayer(part);
  const all = addPart(parent, 'all-layers', 'Table of the layers');
  addTablesOf(all, 'layers', undefined, { choose: (_, layer) => choose({ layer }), isChosen: (_, layer) => layer === chosen.layer });
  if (report.liveness) {
    addFolded(all, 'Table of the steps of the layers', (inner) => addTableAt(inner, 'Layers over the steps', '/liveness/bands',
      [['Layer', 'layer', '/layer'], ['From step', 'count', '/from'], ['To step', 'count', '/to']], { choose: (row) => choose({ step: row.cells[1], view: 'memory' }) }));
  }
};

/** The chosen layer alone. @param {HTMLElement} parent */
const addChosenLayer = (parent) => {
  const box = addAs(parent, 'div', 'layer');
  const show = () => {
    box.replaceChildren();
    const own = chosen.layer === null ? undefined : report.layers[chosen.layer];
    if (!own) return;
    const name = layerName(own.name);
    add(box, 'h3', `Layer ${short(name)}`, 'name');
    const line = add(box, 'p', '');
    addNumber(line, 'span', own.total, `/layers/${chosen.layer}/total`);
    line.append(' bytes over all tiles; ');
    addNumber(line, 'span', own.fullest_tile_bytes, `/layers/${chosen.layer}/fullest_tile_bytes`);
    line.append(' on its fullest, tile ');
    addNumber(line, 'span', own.fullest_tile, `/layers/${chosen.layer}/fullest_tile`);
    const stage = stageOfPosition(/** @type {number} */ (chosen.layer));
    line.append(stage < 0 ? '. ' : `; on IPU ${stage}. `);
    addButton(line, 'Show its variables in Memory', () => choose({ view: 'memory' }));
    line.append(' ');
    addButton(line, 'Let go of it', () => choose({ layer: null }));
    if (!isHuge) addBar(box, partsOf(own.parts), Math.max(own.total, 1));
  };
  show();
  onChoice(['layer'], show);
};
