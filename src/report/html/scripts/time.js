// Time: the step of the pipeline as a row for each IPU over cycles, and the cycles of stages and layers.

/** @typedef {{ipu: number, from: number, to: number, kind: string, batch: number}} Piece */

/** The most micro-batches that are drawn; later ones look the same. */
const MOST_BATCHES = 64;

/** The pieces of work of a step, slot by slot (docs/model.md, "Time"), and the cycles of each slot.
 * @param {Json.PassCycles[]} passes of each stage @param {number} batches */
const stepSlots = (passes, batches) => {
  const last = passes.length - 1;
  const { every, turn, through } = stepOrder(passes.length);
  /** @type {Piece[][]} */
  const slots = Array.from({ length: (batches - 1) * every + through }, () => []);
  /** @param {number} slot @param {number} ipu @param {number} batch @param {(keyof Json.PassCycles)[]} kinds */
  const work = (slot, ipu, batch, ...kinds) => {
    for (const kind of kinds) if (passes[ipu][kind] > 0) slots[slot].push({ ipu, from: 0, to: passes[ipu][kind], kind, batch });
  };
  for (let batch = 0; batch < batches; batch++) {
    for (let ipu = 0; ipu <= last; ipu++) {
      work(batch * every + ipu, ipu, batch, 'forward');
      if (report.pipeline?.is_training) work(batch * every + 2 * last + turn - ipu, ipu, batch, 'recomputed', 'backward');
    }
  }
  let cycles = 0;
  const starts = slots.map((pieces) => {
    const start = cycles;
    const ends = passes.map(() => start);
    for (const own of pieces) {
      [own.from, own.to] = [ends[own.ipu], ends[own.ipu] + own.to];
      ends[own.ipu] = own.to;
    }
    cycles = Math.max(...ends);
    return start;
  });
  return { pieces: slots.flat(), starts, cycles };
};

/** The schedule in slots: does one stage work at a time, how many slots are between two micro-batches,
 * does the last stage wait a slot between its passes, and how many slots does a micro-batch take?
 * @param {number} stages */
const stepOrder = (stages) => {
  const { schedule = 'none', is_training: isTraining = false } = /** @type {Partial<Json.PipelineFacts>} */ (report.pipeline ?? {});
  const isSerial = stages === 1 || schedule === 'sequential' || (isTraining && schedule === 'none');
  const every = isSerial ? stages * (isTraining ? 2 : 1) : schedule === 'tf-interleaved' && isTraining ? 2 : 1;
  const turn = isSerial || schedule !== 'popart' ? 1 : 0;
  return { isSerial, every, turn, through: isTraining ? 2 * stages - 1 + turn : stages };
};

/** Each kind of work with its CSS class and its name. @type {[keyof Json.PassCycles, string, string][]} */
const WORK = [
  ['forward', 'tile-0', 'Forward'], ['backward', 'tile-1', 'Backward'], ['recomputed', 'recomputed', 'Recomputed'],
];

/** Draws the step of the run's split. @param {HTMLElement} parent @param {Json.StepFacts} step @param {Json.StageCycles[]} all */
const addStepStrip = (parent, step, all) => {
  const passes = all.flatMap((own) => own.passes ?? []);
  const stages = all.length;
  if (!stages || isHuge || passes.length < stages || report.pseudo_layers === 'out-with-in' && stages > 1) {
    return void add(parent, 'p', 'There is no drawing of the step: the cycles of each stage by pass are unknown, or Out runs on the first IPU.', 'soft');
  }
  const batches = Math.min(step.micro_batches, MOST_BATCHES);
  const { pieces, starts, cycles } = stepSlots(passes, batches);
  addLegend(parent, [...WORK.map(([, look, name]) => /** @type {[string, string]} */ ([look, name])), ['track', 'Idle']]);
  let value = 0;
  const names = Array.from({ length: stages }, (_, ipu) => `IPU ${ipu}`);
  const HEIGHT = Math.min(60 + stages * 34, 560);
  const plot = addPlot(parent, {
    id: 'step-strip', label: 'Work of each IPU over the cycles of a step', unit: 'cycle', height: HEIGHT, first: 0, last: Math.max(cycles - 1, 1),
    places: starts, lanes: names, range: () => [0, stages],
    value: () => value,
    choose: (place) => { value = place; plot.show(); },
    said: (place, share) => {
      const ipu = Math.min(Math.max(Math.floor((share * HEIGHT - 8) / (HEIGHT - 32) * stages), 0), stages - 1);
      const own = pieces.find((one) => one.ipu === ipu && one.from <= place && place < one.to);
      return `IPU ${ipu} at cycle ${grouped(place)}\n` + (own
        ? `${own.kind} of micro-batch ${own.batch}: ${grouped(own.to - own.from)} cycles` : 'idle');
    },
    paint: (inner, scale) => {
      const each = (scale.bottom - scale.top) / stages;
      /** @type {[number, number, string][]} */
      const labels = [];
      for (let ipu = 0; ipu < stages; ipu++) {
        const y = scale.top + ipu * each + 3;
        draw(inner, 'rect', { class: 'track', x: 0, width: scale.width, y, height: each - 6 });
        for (const [kind, look] of WORK) {
          let path = '', widest = 0;
          for (const own of pieces) {
            if (own.ipu !== ipu || own.kind !== kind || own.to < scale.from || own.from > scale.to) continue;
            const [left, right] = [Math.max(scale.x(own.from), 0), Math.min(scale.x(own.to), scale.width)];
            widest = Math.max(widest, right - left);
            path += `M${round(left)} ${y}H${round(right)}V${round(y + each - 6)}H${round(left)}Z`;
            if (right - left > 16 && kind !== 'recomputed') labels.push([(left + right) / 2, y + each / 2 + 1, String(own.batch)]);
          }
          // The edges of a very narrow piece would hide the piece itself.
          if (path) draw(inner, 'path', { class: `${look} work${widest < 5 ? ' is-thin' : ''}`, d: path });
        }
      }
      for (const [x, y, text] of labels) draw(inner, 'text', { class: 'piece', x: round(x), y: round(y), 'text-anchor': 'middle' }, text);
    },
    table: (inner) => addTable(inner, 'Cycles of each IPU in the step that is drawn',
      columnsOf([['IPU', 'text'], ['Forward', 'count'], ['Backward', 'count'], ['Recomputed', 'count'], ['Idle', 'count'], ['Idle share', 'share']]),
      names.map((name, ipu) => {
        const busy = WORK.map(([kind]) => pieces.reduce((sum, own) => own.ipu === ipu && own.kind === kind ? sum + own.to - own.from : sum, 0));
        const idle = cycles - busy.reduce((a, b) => a + b, 0);
        return { at: '', cells: [name, ...busy, idle, [idle, cycles]] };
      })),
  });
  plot.figure.dataset.cycles = String(cycles);
  const rest = [step.copy_cycles && `${grouped(step.copy_cycles)} cycles of copies between IPUs`,
    step.update_cycles && `${grouped(step.update_cycles)} of the update`].filter(Boolean);
  add(plot.figure, 'figcaption', `Numbers are micro-batches. A slot ends when its last IPU is done. The drawing has ${counted(batches, 'micro-batch').replace('batchs', 'batches')}${batches < step.micro_batches ? ` of ${grouped(step.micro_batches)}; the others are like those in the middle` : ''}, ${grouped(cycles)} cycles${rest.length ? `, without ${rest.join(' and ')}` : ''}.`);
};

/** The columns of a table of cycles. @type {Parameters<columnsOf>[0]} */
const CYCLES = [['Cycles', 'count', '/cycles'], ['For a micro-batch', 'count', '/micro_batch_cycles'], ['Exchange', 'count', '/exchange'],
  ['Forward', 'count', '/passes/forward'], ['Backward', 'count', '/passes/backward'], ['Recomputed', 'count', '/passes/recomputed'], ['Update', 'count', '/passes/update']];

/** Draws the cycles of all layers as columns of compute and exchange. @param {HTMLElement} parent @param {Json.LayerCycles[]} all */
const addLayerCycles = (parent, all) => {
  addLegend(parent, [['tile-0', 'Compute sets'], ['exchange', 'Exchanges between tiles']]);
  addLayerPlot(parent, {
    id: 'layer-cycles', label: 'Cycles of each layer', measure: 'cycles', names: all.map((own) => own.name),
    parts: (place) => {
      const exchange = Math.min(all[place].exchange, all[place].cycles);
      return [{ look: 'tile-0', bytes: all[place].cycles - exchange }, { look: 'exchange', bytes: exchange }];
    },
    total: (place) => all[place].cycles,
    said: (place) => `${layerName(all[place].name)}\n${grouped(all[place].cycles)} cycles\n${grouped(all[place].exchange)} of them exchanges`,
    table: (inner) => addTableAt(inner, 'Cycles by layer', '/execution/layers', [['Layer', 'layer', '/name'], ...CYCLES], { most: 30, choose: (_, layer) => choose({ layer }) }),
  });
};

/** Builds the view of the step and of cycles. @param {HTMLElement} parent */
const buildTime = (parent) => {
  const { execution } = report;
  const part = addPart(parent, 'execution', 'Time');
  if (!execution) {
    add(part, 'p', 'The profile has no cycles. Record it with "profiler.includeCycleEstimates":"true", or run the model.');
    addTableAt(part, 'Cycles by IPU', '/fit/ipus', [['IPU', 'count', '/ipu'], ['Executed cycles', 'count', '/cycles']], {}, (own) => typeof own.cycles === 'number');
    return;
  }
  const { total, stages, layers } = execution;
  addLine(part, 'p', [`Cycles as ${execution.source === 'executed-steps' ? 'measured when the model ran' : 'estimated by the compiler'}.`,
    ' All together: ', [total, '/execution/total'], '.']);
  addSentences(part, 'step');
  if (report.step) addStepStrip(part, report.step, stages);
  if (stages.length) {
    const own = addPart(parent, 'cycles-by-stage', 'Stages');
    addBalance(own, stages);
    addTableAt(own, 'Cycles by stage', '/execution/stages', [['Stage', 'count', '/stage'], ...CYCLES], { choose: (_, ipu) => choose({ ipu }) });
  }
  if (layers.length && !isHuge) addLayerCycles(addPart(parent, 'cycles-by-layer', 'Layers'), layers);
  const rest = /** @type {[string, 'unplaced' | 'unplaced_exchange' | 'other'][]} */ ([
    ['In no layer', 'unplaced'], ['of them exchange', 'unplaced_exchange'], ['stream copies, syncs and control flow', 'other'],
  ]).filter(([, key]) => execution[key]);
  const pieces = rest.flatMap(([name, key], place) => /** @type {Pieces} */ ([`${place ? '; ' : ''}${name}: `, [execution[key], `/execution/${key}`]]));
  if (rest.length) addLine(parent, 'p', [...pieces, ' cycles.'], 'soft');
};

/** Says which stage is the slowest, for which the others wait. @param {HTMLElement} parent @param {Json.StageCycles[]} stages */
const addBalance = (parent, stages) => {
  if (isHuge) return;
  const cycles = stages.map((own) => own.micro_batch_cycles ?? own.cycles);
  const most = Math.max(...cycles);
  const slowest = cycles.indexOf(most);
  const all = cycles.reduce((a, b) => a + b, 0);
  addLine(parent, 'p', [`The slowest stage sets the pace of a pipeline: IPU ${stages[slowest].stage} with `,
    [most, `/execution/stages/${slowest}/${stages[slowest].micro_batch_cycles ? 'micro_batch_cycles' : 'cycles'}`],
    ` cycles for a micro-batch. All stages together are busy for ${ofLimit(all, most * stages.length)} of that time.`]);
  addBars(parent, stages.map(({ stage, passes, micro_batch_cycles: own }, place) => ({
    name: `IPU ${stage}`, value: ofLimit(cycles[place], most),
    parts: passes && typeof own === 'number' ? WORK.map(([kind, look, name]) => ({ look, name, bytes: passes[kind] })) : [{ look: 'tile-0', name: 'All', bytes: cycles[place] }],
  })), most || 1, [], 'cycles');
  if (stages.some((own) => own.passes)) addLegend(parent, WORK.map(([, look, name]) => [look, name]));
};
