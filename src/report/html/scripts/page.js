// The page: its head, its views, and its start.

/** All views, in order: id, title, whether the report has the view, and the function that builds it.
 * @type {[string, string, () => boolean, (parent: HTMLElement) => void][]} */
const VIEWS = [
  ['compare', 'What moved', () => !!earlier, (parent) => buildComparison(parent)],
  ['plan', 'Plan', () => !!(report.plan || report.sweep || report.sizes.length), (parent) => buildPlan(parent)],
  ['split', 'Split', () => !!report.split, (parent) => buildSplit(parent)],
  ['ipus', 'IPUs', () => !!report.fit, (parent) => buildIpus(parent)],
  ['memory', 'Memory', () => true, (parent) => buildMemory(parent)],
  ['time', 'Time', () => !report.fit || report.fit.ipus.some((own) => typeof own.cycles === 'number'), (parent) => buildTime(parent)],
  ['layers', 'Layers', () => report.layers.length > 0, (parent) => buildLayers(parent)],
  ['configuration', 'Configuration', () => !!report.split, (parent) => buildConfiguration(parent)],
  ['details', 'Details', () => true, (parent) => buildDetails(parent)],
];

/** The positions at which the stages of a row begin, but for the first stage. An Out that runs on the first
 * IPU is named there, but has no position of its own. @param {Json.BestSplit} row */
const startsOf = ({ stages }) => {
  let position = report.pseudo_layers === 'out-with-in' ? -1 : 0;
  return stages.slice(0, -1).map((layers) => position += layers.length);
};

/** Draws the stages of a row of the plan or the sweep below their names. @param {Element} own @param {Column} column @param {Row} row */
const drawStages = (own, column, row) => {
  if (column.kind !== 'layers' || isHuge) return;
  /** @type {Json.BestSplit} */
  const split = at(row.at);
  const starts = startsOf(split);
  addStrip(own, split.stage_bytes.map((bytes, stage) => ({
    range: [starts[stage - 1] ?? 0, starts[stage] ?? report.layers.length], bytes, limit: report.split?.limits?.[stage] ?? split.limit,
  })));
};

/** The columns that come first, so that a narrow screen shows them. */
const FIRST = ['IPUs', 'State', 'Layers of each stage', 'Peak memory', 'Of the limit', 'Micro-batch', ''];

/** @param {HTMLElement} parent */
const buildPlan = (parent) => {
  if (report.plan) {
    const plan = addPart(parent, 'plan', 'Configurations that fit',
      'The best configuration comes first; the text above is about it. The other views show the split of this run.');
    for (const id of ['recommendation', 'bottlenecks', 'plan', 'tried']) addSentences(plan, id);
    addTablesOf(plan, 'plan', FIRST, { drawn: drawStages });
  }
  if (report.sweep) {
    const sweep = addPart(parent, 'sweep', 'Numbers of IPUs',
      'The best split for each number of IPUs; if none fits, the one that needs the least memory.');
    addTablesOf(sweep, 'sweep', FIRST, known ? {
      drawn: drawStages, choose: (row) => choose({ view: 'split', ipus: at(row.at).ipus / at(row.at).replicas, cuts: startsOf(at(row.at)).join(',') || 'none' }),
    } : {});
    if (known) add(sweep, 'p', 'Press a number of IPUs to see that split, and to move its cuts.', 'soft');
  }
  if (report.sizes.length) {
    const sizes = addPart(parent, 'sizes', 'Micro-batches');
    addSentences(sizes, 'sizes');
    addTablesOf(sizes, 'sizes', FIRST);
  }
};

/** Shows the head: does the model fit, on how many IPUs, how near is each IPU to its limit, how long is
 * a step, and what to paste. If the reader tries another split, the head is about that one. */
const showHead = () => {
  const head = byId('head');
  head.replaceChildren();
  add(head, 'p', `PopLiner report on ${short(report.provenance.files.profile)}`, 'eyebrow');
  const answer = addAs(head, 'div', 'answer');
  follow(TRIED, () => showAnswer(answer));
  addPaste(head);
};

/** @typedef {{ipu: number, at: string, tile: {bytes: number, limit: number, free: number, tile?: number}}} NearIpu of the run, or
 *   of a split that the reader tries, which has no place in the report */

/** Shows the answers of the run or, if the reader tries another split, those for that split. @param {HTMLElement} head */
const showAnswer = (head) => {
  const tried = known?.isTried() ? known.tried() : null;
  const { split, fit, step, liveness, memory: { tiles, limit } } = report;
  const fits = tried ? !tried.faults.length : (split ?? fit)?.fits;
  const title = tried ? `With your changes, the model ${fits ? 'fits' : 'does not fit'} on ${counted(tried.stages.length, 'IPU')}` : report.heading ?? 'Report';
  document.title = `${title} \u2013 PopLiner`;
  head.replaceChildren();
  add(head, 'h1', title, fits === undefined ? '' : fits ? 'good' : 'bad');
  if (tried && !fits) add(head, 'p', `${tried.faults.join('; ')}.`, 'bad');
  else if (split && !fits) addSentences(head, 'verdict', 'said bad-list');
  const figures = add(head, 'dl', '', 'figures');
  /** @type {NearIpu[]} */
  const stages = tried?.stages.map(({ bytes, limit: most }, ipu) => ({ ipu, at: '', tile: { bytes, limit: most, free: most - bytes } })) ?? stagesOf();
  if (stages.length) {
    const { ipu, at: root, tile } = nearestOf(stages);
    const isOver = tile.free < 0;
    /** @param {'bytes' | 'limit' | 'free'} key @returns {Pieces[0]} */
    const number = (key) => root ? [tile[key], `${root}/fullest_tile/${key}`] : grouped(tile[key]);
    addFigure(figures, isOver ? 'Furthest over its limit' : 'Nearest to its limit', [ofLimit(tile.bytes, tile.limit)],
      [number('bytes'), ' of ', number('limit'), root ? ` bytes; tile ${tile.tile} of IPU ${ipu}` : ` bytes of IPU ${ipu}`]);
    if (isOver) addFigure(figures, 'Over the limit by', [grouped(String(tile.free).slice(1))], ['bytes'], 'bad');
    else addFigure(figures, 'Free there', [number('free')], ['bytes']);
  } else {
    addFigure(figures, 'Fullest tile', tiles ? [[tiles.total[tiles.fullest], `/memory/tiles/total/${tiles.fullest}`]] : ['not recorded'],
      tiles ? [`bytes on tile ${tiles.fullest}`] : []);
    addFigure(figures, 'Limit of a tile', [[limit, '/memory/limit']], ['bytes']);
  }
  if (tried) addStepFigure(figures, tried);
  else if (step) {
    const isTimed = typeof step.milliseconds === 'number';
    addFigure(figures, 'A step', [isTimed ? `${digits(step.milliseconds ?? 0)} ms` : [step.cycles, '/step/cycles']],
      [isTimed ? '' : 'cycles; ', 'slowest is IPU ', [step.slowest_stage, '/step/slowest_stage']]);
  } else if (liveness) addFigure(figures, 'Steps of the program', [[liveness.steps, '/liveness/steps']]);
  const warnings = sentencesOf('warnings').length;
  if (warnings) addButton(addFigure(figures, 'Warnings', []), String(warnings), () => choose({ view: 'details' }), '', 'link');
  addNearness(head, stages);
};

/** Shows how near each IPU is to its limit. @param {HTMLElement} parent @param {NearIpu[]} stages */
const addNearness = (parent, stages) => {
  if (!stages.length) return;
  const list = set(add(parent, 'div', '', 'nearness'), { role: 'group', 'aria-label': 'How full each IPU is' });
  for (const { ipu, tile: { bytes, limit, tile } } of stages) {
    const own = addButton(list, '', () => choose({ ipu, view: report.split ? 'split' : 'ipus' }), '', Number(bytes) > Number(limit) ? 'is-over' : '');
    add(add(own, 'span', '', 'gauge'), 'span').style.width = `${Math.min(Number(bytes) / (Number(limit) || 1), 1) * 100}%`;
    add(own, 'span', `IPU ${ipu}: ${ofLimit(bytes, limit)}`);
    own.dataset.tip = `IPU ${ipu}\n${tile === undefined ? 'its fullest tile' : `tile ${tile}`} has ${grouped(bytes)} of ${grouped(limit)} bytes`;
  }
};

/** Shows the configuration in the form of the model's framework, also for moved cuts. @param {HTMLElement} parent */
const addPaste = (parent) => {
  const form = report.configuration?.find((one) => one.text);
  if (!form) return;
  const paste = add(parent, 'p', '', 'copied');
  const said = add(paste, 'span');
  paste.append(' ');
  addButton(paste, 'Other forms', () => choose({ view: 'configuration' }), '', 'link');
  const text = set(addAs(parent, 'pre', 'paste'), { tabindex: 0 });
  addCopy(paste, () => shownConfiguration(form), 'Copy', 'paste-copy', text);
  follow(TRIED, () => {
    const now = known?.isMoved() ? known.tried() : null;
    const isOver = now ? now.faults.length > 0 : !report.split?.fits && !report.contradictions.some(({ refused }) => refused);
    said.textContent = `To paste (${form.form})${now ? ', with the cuts that you moved' : ''}${isOver ? ', which does not fit' : ''}:`;
    text.textContent = printable(shownConfiguration(form));
  });
};

/** The views that this report has. */
const viewsThere = () => VIEWS.filter(([, , isThere]) => isThere());

/** Unhides a view. It is built when it is first shown. @param {typeof VIEWS[0]} view */
const unhide = ([id, , , build]) => {
  const own = byId(`view-${id}`);
  own.hidden = false;
  if (!own.childElementCount) build(own);
};

/** Shows the chosen view, or the most important one. */
const showView = () => {
  const there = viewsThere();
  const wanted = [chosen.view, earlier ? 'compare' : 'split', 'ipus'].find((id) => there.some(([own]) => own === id));
  const shown = there.find(([own]) => own === wanted) ?? there[0];
  const [id] = shown;
  if (chosen.view !== id) return choose({ view: id });
  for (const view of /** @type {HTMLCollectionOf<HTMLElement>} */ (byId('views').children)) view.hidden = view.id !== `view-${id}`;
  for (const link of byId('bar').querySelectorAll('a')) {
    if (link.dataset.view === id) set(link, { 'aria-current': 'page' }); else link.removeAttribute('aria-current');
  }
  unhide(shown);
};

/** The links to all views. */
const showBar = () => {
  const bar = byId('bar');
  bar.replaceChildren();
  byId('views').replaceChildren();
  for (const [id, name] of viewsThere()) {
    const link = add(bar, 'a', name);
    link.href = `#view=${id}`;
    link.dataset.view = id;
    link.addEventListener('click', (event) => {
      if (event.ctrlKey || event.metaKey || event.shiftKey) return;
      event.preventDefault();
      choose({ view: id });
    });
    addAs(byId('views'), 'div', `view-${id}`);
  }
};

/** Shows a report. @param {Json.Report} own */
const show = (own) => {
  report = own;
  known = tryable();
  followers = [];
  chosen = choiceOf(location.hash);
  showHead();
  showBar();
  follow(['view'], showView);
  byId('foot').replaceChildren();
  add(byId('foot'), 'p', `Made by PopLiner ${report.provenance.popliner}. All bytes are exact; steps, tiles and IPUs count from 0.`);
  addOpener(byId('foot'));
};

// Everything is built and unfolded before the page is printed.
addEventListener('beforeprint', () => {
  if (report) viewsThere().forEach(unhide);
  document.querySelectorAll('details').forEach((own) => set(own, { open: '' }));
});
addEventListener('afterprint', () => { if (report) showView(); });

const begin = async () => {
  const text = await embedded();
  if (text !== null) {
    try {
      show(readReport(text));
    } catch (error) {
      add(byId('head'), 'h1', `The report cannot be shown: ${error instanceof Error ? error.message : error}`, 'bad');
    }
  } else {
    add(byId('head'), 'h1', 'Reports of PopLiner');
    add(byId('head'), 'p', 'Choose a file that --export-json wrote, or drop it here; two files to compare them, the earlier one first. Nothing leaves this browser.');
    addOpener(byId('head'));
  }
  document.documentElement.dataset.ready = 'yes';
};
begin();
