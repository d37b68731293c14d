// The views of a split and of a compilation.

/** Builds the view of a split. @param {HTMLElement} parent */
const buildSplit = (parent) => {
  const tried = addPart(parent, 'what-if', 'Split');
  addSentences(tried, 'refusal', 'said bad-list');
  addTriedSplit(tried);
  addChosenStage(parent);
  const stages = addPart(parent, 'stages', 'Stages as they were searched');
  addSentences(stages, 'pipeline');
  addTablesOf(stages, 'split', undefined, { choose: (_, ipu) => choose({ ipu }) });
  if (report.given) addSentences(addPart(parent, 'given', 'Beside the best'), 'given');
  if (report.cuts?.length) {
    const cuts = addPart(parent, 'cuts', 'Cuts',
      'Bytes of the distinct variables that flow over each cut, in either direction. Always-live variables that both sides use are doubled: each side needs a copy.');
    addTablesOf(cuts, 'cuts');
    const columns = columnsOf([['Cut', 'text'], ['Layers', 'layers', '/layers'], ['To IPU', 'count', '/to_stage'], ['Peak before the cut', 'bytes', '/fullest_tile_bytes/0'],
      ['Change', 'change', '/change/0'], ['Peak after it', 'bytes', '/fullest_tile_bytes/1'], ['Change after it', 'change', '/change/1']]);
    const moves = report.cuts.flatMap((own, place) => rowsAt(`/cuts/${place}/moves`, columns)
      .map((row) => ({ at: row.at, cells: [`IPU ${own.stage - 1} to ${own.stage}`, ...row.cells.slice(1)] })));
    if (moves.length) addTable(cuts, 'Moving one layer over a cut', columns, moves);
  }
  if (report.constraints?.length) {
    const list = add(addPart(parent, 'constraints', 'Constraints'), 'ul');
    const broken = report.given?.broken_constraints ?? [];
    for (const own of report.constraints) {
      const line = add(list, 'li');
      add(line, 'code', short(own));
      if (broken.includes(own)) add(line, 'span', ' broken', 'bad');
    }
  }
  if (report.tied_weights?.length) {
    addSentences(addPart(parent, 'tied-weights', 'Tied weights',
      'Weights that several layers use. Frameworks put a weight on one IPU, so these layers and all between them are in one stage.'), 'tied-weights');
  }
  if (report.shared_variables?.length) {
    const shared = addPart(parent, 'shared-variables', 'Shared variables',
      'These layers share always-live variables, such as constants. A cut between them doubles the bytes.');
    addTableAt(shared, 'Shared variables', '/shared_variables', [['Layers', 'layers', '/layers'], ['Bytes', 'bytes', '/bytes']], { most: 20 });
  }
};

/** Builds the view of the IPUs of a compilation. @param {HTMLElement} parent */
const buildIpus = (parent) => {
  const ipus = addPart(parent, 'ipus', 'IPUs');
  addSentences(ipus, 'verdict');
  const all = stagesOf();
  addPartsLegend(ipus, all.map((own) => own.tile.parts));
  addBars(ipus, all.map(({ ipu, tile }) => ({
    name: `IPU ${ipu}`, press: () => choose({ ipu }), parts: partsOf(tile.parts), value: ofLimit(tile.bytes, tile.limit), isOver: tile.free < 0,
  })), Math.max(...all.flatMap(({ tile }) => [Number(tile.bytes), Number(tile.limit)])), all.map(({ tile }) => Number(tile.limit)));
  addTablesOf(ipus, 'ipus', undefined, { most: 16 });
  addChosenStage(parent);
  if (report.fit?.comparison) {
    const part = addPart(parent, 'prediction', 'Compared with the prediction');
    addSentences(part, 'differences');
    addTablesOf(part, 'prediction');
    addTablesOf(part, 'parts');
  }
};
