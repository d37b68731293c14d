// The proof of the answer, and the files and options that the report was made from.

/** The contents of a file beside the profile, as names and values. @param {any} value @param {string} [name] @returns {[string, string][]} */
const flat = (value, name = '') => value === null || typeof value !== 'object' ? [[name, String(value)]]
  : Object.entries(value).flatMap(([key, own]) => flat(own, name ? `${name}.${key}` : key));

/** @param {HTMLElement} parent */
const addSummary = (parent) => {
  const part = addPart(parent, 'summary', 'How this report was made');
  const { fit, provenance: made } = report;
  const { files, target: { architecture, clock_hz: clock, tiles, bytes_per_tile: bytes } } = made;
  addFacts(part, [
    [files.saved_model ? 'Saved model' : 'Profile', files.profile],
    ['Debug contexts', files.debug],
    ['Target', [`${short(architecture)}, `, [tiles, '/provenance/target/tiles'], ' tiles of ', [bytes, '/provenance/target/bytes_per_tile'], ' bytes',
      clock && ', ', clock && [clock, '/provenance/target/clock_hz'], clock && ' Hz']],
    ['Poplar version', made.poplar ?? 'not recorded'],
    ['Compiled', made.compiled ?? 'not recorded'],
    ['Replicas', fit && grouped(fit.replicas)],
    ['Lowered variables', fit && grouped(fit.variables ?? 'not recorded')],
    ['Predicted from', fit?.comparison?.profile],
    ['Memory model', !fit && made.memory_model],
    ['Arguments', made.arguments.map(quoted).join(' ')],
    ['PopLiner', `version ${made.popliner}, report version ${report.version}`],
  ]);
  if (made.options) addTableAt(part, 'Options that differ from their defaults', '/provenance/options', [['Option', 'text', '/name'], ['Value', 'text', '/value'], ['Of', 'text', '/of']], { most: 30 });
  for (const [name, value] of [['framework.json', made.framework], ['app.json', made.app]]) {
    if (value === null || value === undefined) continue;
    const rows = flat(value).map((cells) => ({ at: '', cells }));
    addFolded(part, name, (inner) => addTable(inner, name, columnsOf([['Name', 'text'], ['Value', 'name']]), rows, { most: 50 }));
  }
};

/** Builds the view of the proof and of the files and options. @param {HTMLElement} parent */
const buildDetails = (parent) => {
  if (sectionOf('warnings')) addSentences(addPart(parent, 'warnings', 'Warnings'), 'warnings', 'said');
  const { contradictions, proof, memory: { coverage } } = report;
  if (contradictions?.length) {
    const list = add(addPart(parent, 'contradictions', 'Where the profile contradicts itself'), 'ul');
    for (const own of contradictions) add(list, 'li', flat(own).map((pair) => pair.join(': ')).join('; '));
  }
  if (proof) {
    const part = addPart(parent, 'proof', 'Proof');
    add(part, 'p', 'The objective was ').append(proof.objective, '.');
    if (proof.objectives.length > 0) addSentences(part, 'proof');
    else add(part, 'p', 'There is no proof that this split is the best: you gave it, no split fits, or the search proves nothing.');
    addTableAt(part, 'Numbers that splits are compared by, the most important first', '/proof/objectives',
      [['Number', 'text', '/objective'], ['Integer program', 'count', '/integer_program'], ['Dynamic program', 'count', '/dynamic_program']]);
  }
  if (coverage) {
    const part = addPart(parent, 'coverage', 'Coverage');
    addSentences(part, 'coverage');
    const rows = /** @type {[string, string, keyof Json.CoverageFacts][]} */ ([
      ['Layers', 'operations whose names give their layer', 'layers'], ['Assigned', 'other operations, in the place where they count', 'assigned'],
      ['By touch', 'part of the assigned bytes: counted in every place that uses them', 'by_touch'], ['Overhead', 'what every stage needs', 'overhead'], ['Rest', 'what nothing explains', 'rest'],
    ]).filter(([, , key]) => coverage[key] !== 0 || key !== 'by_touch');
    addTable(part, 'Coverage', columnsOf([['Part', 'text'], ['What it is', 'text'], ['Bytes', 'bytes', '{}']]),
      rows.map(([name, what, key]) => ({ at: `/memory/coverage/${key}`, cells: [name, what, coverage[key]] })));
  }
  addSummary(parent);
};
