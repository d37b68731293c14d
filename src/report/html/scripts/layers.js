// The layers, each as a stage of its own.

/** Builds the view of the layers. @param {HTMLElement} parent */
const buildLayers = (parent) => {
  const part = addPart(parent, 'layers', 'Layers', 'Each layer by itself, without what every stage needs. Choose one to highlight it everywhere.');
  const { layers } = report;
  if (!isHuge) {
    addPartsLegend(part, layers.map((own) => own.parts));
    addLayerPlot(part, {
      id: 'layer-bytes', label: 'Bytes of each layer', names: layers.map((own) => own.name),
      parts: (place) => partsOf(layers[place].parts), total: (place) => layers[place].total,
      said: (place) => saidOfLayer(layers[place]),
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

/** Shows the chosen layer. @param {HTMLElement} parent */
const addChosenLayer = (parent) => {
  const box = addAs(parent, 'div', 'layer');
  follow(['layer'], () => {
    box.replaceChildren();
    const own = chosen.layer === null ? undefined : report.layers[chosen.layer];
    if (!own) return;
    const name = layerName(own.name);
    add(box, 'h3', `Layer ${short(name)}`, 'name');
    const stage = stageOfPosition(/** @type {number} */ (chosen.layer));
    const line = addLine(box, 'p', [[own.total, `/layers/${chosen.layer}/total`], ' bytes over all tiles; ',
      [own.fullest_tile_bytes, `/layers/${chosen.layer}/fullest_tile_bytes`], ' on its fullest, tile ',
      [own.fullest_tile, `/layers/${chosen.layer}/fullest_tile`], stage < 0 ? '. ' : `; on IPU ${stage}. `]);
    addButton(line, 'Show its variables in Memory', () => choose({ view: 'memory' }));
    line.append(' ');
    addButton(line, 'Let go of it', () => choose({ layer: null }));
    if (!isHuge) addBar(box, partsOf(own.parts), Math.max(own.total, 1));
  });
};
