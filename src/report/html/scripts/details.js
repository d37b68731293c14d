// What shows that the answer is right, and from what it was made.

/** A file beside the profile, as names and values. @param {string} name @param {any} value
 * @param {[string, string][]} entries */
const flatten = (name, value, entries) => {
  if (value !== null && typeof value === 'object') {
    for (const [key, own] of Object.entries(value)) flatten(name ? `${name}.${key}` : key, own, entries);
  } else entries.push([name, String(value)]);
};

/** @param {HTMLElement} parent */
const addProof = (parent) => {
  if (!report.proof) return;
  const part = addPart(parent, 'proof', 'Proof');
  add(part, 'p', 'The objective was ').append(report.proof.objective, '.');
  if (report.proof.optimal) addSentences(part, 'proof');
  else add(part, 'p', 'Nothing shows that this split is the best: it was given, none fits, or the search proves nothing.');
  addTableAt(part, 'Numbers that splits are compared by, the first deciding first', '/proof/objectives',
    [['Number', 'text', '/objective'], ['Integer program', 'count', '/integer_program'], ['Dynamic program', 'count', '/dynamic_program']]);
  addTableAt(part, 'Why these cannot be lower', '/proof/bottlenecks',
    [['Number', 'text', '/objective'], ['Next lower number of any range of layers', 'count', '/below'], ['Stages needed for it', 'count', '/stages_needed']]);
};

/** @param {HTMLElement} parent */
const addCoverage = (parent) => {
  const own = report.memory.coverage;
  if (!own) return;
  const part = addPart(parent, 'coverage', 'Coverage');
  addSentences(part, 'coverage');
  const columns = columnsOf([['Part', 'text'], ['What it is', 'text'], ['Bytes', 'bytes', '{}']]);
  const rows = /** @type {[string, string, keyof Json.CoverageFacts][]} */ ([
    ['Layers', 'operations that have a layer by their names', 'layers'], ['Assigned', 'other operations, in the place where they count', 'assigned'],
    ['By touch', 'of the assigned, in every place that touches it', 'by_touch'], ['Overhead', 'what every stage needs', 'overhead'], ['Rest', 'what nothing explains', 'rest'],
  ]).map(([name, what, key]) => ({ at: `/memory/coverage/${key}`, cells: [name, what, own[key]] }));
  addTable(part, 'Coverage', columns, rows.filter((row) => row.cells[2] !== 0 || row.cells[0] !== 'By touch'));
};

/** @param {HTMLElement} parent */
const addSummary = (parent) => {
  const part = addPart(parent, 'summary', 'From what it was made');
  const made = report.provenance;
  const { target, files } = made;
  const list = add(part, 'dl', '', 'facts');
  /** @param {string} name @param {string} text */
  const fact = (name, text) => {
    add(list, 'dt', name);
    add(list, 'dd', short(text, 400));
  };
  fact(files.saved_model ? 'Saved model' : 'Profile', files.profile);
  if (files.debug) fact('Debug contexts', files.debug);
  add(list, 'dt', 'Target');
  const own = add(list, 'dd', `${short(target.architecture)}, `);
  addNumber(own, 'span', target.tiles, '/provenance/target/tiles');
  own.append(' tiles of ');
  addNumber(own, 'span', target.bytes_per_tile, '/provenance/target/bytes_per_tile');
  own.append(' bytes');
  if (target.clock_hz) {
    own.append(', ');
    addNumber(own, 'span', target.clock_hz, '/provenance/target/clock_hz');
    own.append(' Hz');
  }
  fact('Poplar version', made.poplar ?? 'not recorded');
  fact('Compiled', made.compiled ?? 'not recorded');
  if (report.fit) {
    fact('Replicas', grouped(report.fit.replicas));
    fact('Lowered variables', typeof report.fit.variables === 'number' ? grouped(report.fit.variables) : 'not recorded');
    if (report.fit.against) fact('Predicted from', report.fit.against.profile);
  } else fact('Memory model', made.memory_model);
  fact('Arguments', made.arguments.map(quoted).join(' '));
  fact('PopLiner', `version ${made.popliner}, report version ${report.version}`);
  if (made.options) addTableAt(part, 'Options that are not their defaults', '/provenance/options', [['Option', 'text', '/name'], ['Value', 'text', '/value'], ['Of', 'text', '/of']], { most: 30 });
  for (const [name, value] of [['framework.json', made.framework], ['app.json', made.app]]) {
    if (value === null || value === undefined) continue;
    /** @type {[string, string][]} */
    const entries = [];
    flatten('', value, entries);
    addFolded(part, name, (inner) => addTable(inner, name, columnsOf([['Name', 'text'], ['Value', 'name']]), entries.map((cells) => ({ at: '', cells })), { most: 50 }));
  }
};

/** The whole view. @param {HTMLElement} parent */
const buildDetails = (parent) => {
  if (sectionOf('warnings')) addSentences(addPart(parent, 'warnings', 'Warnings'), 'warnings', 'said');
  if (report.contradictions?.length) {
    const part = addPart(parent, 'contradictions', 'Where the profile contradicts itself');
    const list = add(part, 'ul');
    for (const own of report.contradictions) {
      /** @type {[string, string][]} */
      const entries = [];
      flatten('', own, entries);
      add(list, 'li', entries.map(([name, value]) => `${name}: ${value}`).join('; '));
    }
  }
  addProof(parent);
  addCoverage(parent);
  addSummary(parent);
};
