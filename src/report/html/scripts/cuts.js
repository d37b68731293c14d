// The numbers of a split whose cuts the reader moves. Nothing is searched here: all numbers follow
// from the bytes of each range of layers, which the report has.

/** @typedef {{cuts: number[], ipus: number, memories: number[], reserves: number[]}} Tried `cuts` are indices of boundaries */

/** @typedef {NonNullable<ReturnType<typeof tryable>>} Known */
/** @typedef {ReturnType<Known['judged']>} Judged a split with all its numbers */

/** The keys of a choice that make up a split to try. @type {(keyof Choice)[]} */
const TRIED = ['cuts', 'ipus', 'memory', 'reserve'];

/** The report's numbers of other splits, with functions on them; null if it has none, or numbers that a browser cannot add up exactly. */
const tryable = () => {
  const { what_if: data, split, layers } = report;
  if (!data || !split || isHuge) return null;
  const last = data.boundaries.length - 1;
  const positions = data.boundaries[last];
  if (layers.length !== positions) return null;
  const { profiles, profiles: [{ cycles }] } = data;
  if (profiles.some(({ cycles: own }) => own && !Number.isSafeInteger([...own.once, ...own.recomputed].reduce((a, b) => a + b, 0)))) return null;

  // By start and end of a range: the index of its first number in `bytes`.
  /** @type {number[][]} */
  const places = [];
  let count = 0;
  /** @param {number} end */
  const inOne = (end) => data.by_stages_after && end < last ? Math.min(data.max_stages - 1, last - end) : 1;
  for (let start = 0; start < last; start++) {
    places.push([]);
    for (let end = start + 1; end <= last; end++) {
      places[start][end] = count;
      count += inOne(end);
    }
  }

  /** The memory of a tile and the reserve: one pair for all IPUs, or a pair for each. */
  const limits = split.limits ?? [split.limit];
  let said = data.memories.map((memory, ipu) => [memory, data.reserves[ipu] ?? 0]);
  if (limits.length === 1) said = said.filter((one, place) => !place || String(one) !== String(said[0]));
  const isSaid = String(said.map(([memory, reserve]) => memory - reserve)) === String(limits);
  const pairs = isSaid ? said : limits.map((one) => [one, 0]);
  const [memories, reserves] = [0, 1].map((place) => pairs.map((one) => one[place]));

  /** The limits in bytes: one for all IPUs, or one for each. @param {Tried} now */
  const limitsOf = (now) => {
    const all = now.memories.map((memory, ipu) => memory - now.reserves[ipu]);
    return all.length > 1 ? all.slice(0, now.ipus) : all;
  };

  /** The cycles of a micro-batch in a stage, with recomputation. @param {Json.ProfileNumbers} profile
   * @param {[number, number]} range @param {boolean} isFollowed do other stages follow in the pipeline? */
  const cyclesOf = ({ cycles: own }, range, isFollowed) => {
    if (!own) return null;
    // Frozen layers run again if another layer of the stage does.
    const isAgain = own.recomputes.slice(...range).includes(true);
    return sumOf(own.once, range) + (isAgain ? sumOf(isFollowed ? own.recomputed : own.recomputed_last, range) : 0);
  };

  /** The profile of each stage: that of the run for its cuts and limits. Otherwise, of the profiles with which a stage fits, those that keep
   * to the lowest bounds on time and memory of all stages, in the order of the objective. @param {Tried} now
   * @template {StageBytes & {amp: ?number, cycles: ?number, cutBytes: ?number}} T @param {T[][]} choices by stage, then by profile */
  const chosenOf = (choices, now) => {
    if (String([now.cuts, limitsOf(now)]) === String([start.cuts, limitsOf(start)])) {
      return choices.map((all, stage) => all.find(({ amp }) => amp === split.stages[stage].amp) ?? all[0]);
    }
    const objective = report.proof?.objective ?? 'time';
    const leastOf = (/** @type {T[]} */ all, /** @type {(one: T) => number} */ of) => Math.min(...all.map(of));
    const bytesOf = (/** @type {T} */ one) => one.bytes;
    const timeOf = (/** @type {T} */ one) => one.cycles ?? 0;
    const sentOf = (/** @type {T} */ one) => objective === 'communication' ? one.cutBytes ?? 0 : 0;
    let left = choices.map((all) => all.filter(({ bytes, limit }) => bytes <= Math.max(limit, leastOf(all, bytesOf))))
      .map((all) => all.filter((one) => sentOf(one) <= leastOf(all, sentOf)));
    for (const of of ['time', 'cycles'].includes(objective) ? [timeOf, bytesOf] : [bytesOf, timeOf]) {
      const bound = Math.max(...left.map((all) => leastOf(all, of)));
      left = left.map((all) => all.filter((one) => of(one) <= bound));
    }
    return left.map((all) => all.reduce((best, one) => one.bytes < best.bytes ? one : best));
  };

  /** The limits, bytes and cycles of each stage of a split, and why it does not fit. @param {Tried} now */
  const judged = (now) => {
    const ends = [...now.cuts, last];
    const all = limitsOf(now);
    const stages = chosenOf(ends.map((end, stage) => {
      const start = stage ? ends[stage - 1] : 0;
      const after = ends.length - 1 - stage;
      const first = data.by_stages_after && end < last ? 1 : 0;
      const place = places[start][end] + (data.by_stages_after ? after - first : 0);
      const range = /** @type {[number, number]} */ ([data.boundaries[start], data.boundaries[end]]);
      const limit = all.length > 1 ? all[stage] ?? Math.max(...all) : all[0];
      const isFollowed = after > 0 || ends.length > 1 && !!cycles?.is_out_first;
      return profiles.map((profile) => ({
        range, limit, profile, amp: profile.amp ?? null, bytes: profile.bytes[place], cycles: cyclesOf(profile, range, isFollowed),
        cutBytes: now.cuts[stage] ? profile.cut_bytes[end - 1] : null,
      }));
    }), now);
    return {
      ...now, stages, faults: faultsOf(now, stages),
      peak: Math.max(...stages.map((stage) => stage.bytes)),
      cutBytes: stages.reduce((sum, stage) => sum + (stage.cutBytes ?? 0), 0),
      slowest: cycles ? Math.max(...stages.map((stage) => stage.cycles ?? 0)) : null,
    };
  };

  /** The cycles of a step; null if they are unknown, or too many for exact numbers. @param {{range: [number, number], cycles: ?number, profile: Json.ProfileNumbers}[]} stages */
  const stepOf = (stages) => {
    const numbers = cycles?.step;
    if (!numbers) return null;
    const passes = stages.map(({ range, cycles: all, profile: { cycles: own } }) => {
      const [once, backward, update] = [own?.once, own?.step?.backward, own?.step?.update].map((list) => sumOf(list ?? [], range));
      return { forward: once - backward, backward, recomputed: (all ?? 0) - once, update };
    });
    // By cut: bytes of the forward pass, which the stage before it sends, and of the backward pass.
    const sent = stages.slice(1).map(({ range: [at], profile }, before) => [stages[before].profile, profile]
      .map(({ cycles: own }, pass) => own?.step?.cut_bytes[at - 1]?.[pass] ?? 0));
    const batches = numbers.micro_batches[stages.length - 1];
    // Once the pipeline is full, each further micro-batch takes the same time.
    const some = Math.min(batches, 2 * stages.length + 4);
    const { cycles: work } = stepSlots(passes, some);
    const more = batches > some ? (batches - some) * (work - stepSlots(passes, some - 1).cycles) : 0;
    const updates = passes.map((own) => own.update);
    const update = numbers.updates_side_by_side ? Math.max(...updates) : updates.reduce((a, b) => a + b, 0);
    const sum = work + more + update + copyCycles(numbers.link_bandwidth, sent, batches);
    return Number.isSafeInteger(sum) ? sum : null;
  };

  /** @param {Json.CheckedConstraint} rule @param {{range: [number, number]}[]} stages */
  const isKept = (rule, stages) => {
    const stage = (/** @type {number} */ position) => stages.findIndex((one) => position < one.range[1]);
    switch (rule.rule) {
      case 'pin': return stage(rule.position) === rule.ipu;
      case 'together': return stage(rule.first) === stage(rule.last);
      default: return stage(rule.position - 1) !== stage(rule.position);
    }
  };

  /** The reasons why a split does not fit; empty if it fits. @param {Tried} now @param {StageBytes[]} stages */
  const faultsOf = (now, stages) => {
    const found = stages.flatMap((one, ipu) => one.bytes > one.limit
      ? [`IPU ${ipu} is ${counted(one.bytes - one.limit, 'byte')} over its limit`] : []);
    if (found.length > 4) found.splice(3, Infinity, `and so are ${found.length - 3} others`);
    if (stages.length > now.ipus) found.push(`it has ${counted(stages.length, 'stage')}, and the number of IPUs is ${now.ipus}`);
    const broken = data.constraints.filter((rule) => !isKept(rule, stages));
    return [...found, ...broken.map((rule) => `it breaks ${short(rule.name)}`)];
  };

  /** The indices of the boundaries before these positions. @param {number[]} cuts @returns {number[]} */
  const cutsOf = (cuts) => cuts.map((cut) => data.boundaries.indexOf(cut));

  /** @type {Tried} */
  const start = { cuts: cutsOf(split.stages.slice(1).map((stage) => stage.positions.start)), ipus: split.max_stages, memories, reserves };
  const mostIpus = Math.max(start.ipus, ...data.best.map((one) => one.ipus));

  /** The reserves for these bytes of memory of a tile if the reader entered no reserve. @param {number[]} now */
  const reservesOf = (now) => String(now) === String(memories) ? reserves : [common(reserves) ?? 0];

  /** The cuts and limits that the reader tries. Choices that are impossible here are replaced by those of the run. @returns {Tried} */
  const wanted = () => {
    const places = (chosen.cuts ?? '').split(',').map((one) => data.boundaries.indexOf(Number(one)));
    const isKnown = places.every((one, place) => one > (places[place - 1] ?? 0) && one < last) && places.length < data.max_stages;
    const own = chosen.memory ? [chosen.memory] : memories;
    const now = {
      cuts: chosen.cuts === 'none' ? [] : isKnown ? places : start.cuts,
      ipus: chosen.ipus && chosen.ipus <= mostIpus ? chosen.ipus : start.ipus,
      memories: own, reserves: chosen.reserve === null ? reservesOf(own) : own.map(() => chosen.reserve ?? 0),
    };
    return Math.min(...limitsOf(now)) > 0 ? now : { ...now, memories, reserves };
  };

  /** The choice that leads to a split; null for each value that is the run's. @param {Tried} now */
  const choiceOf = (now) => ({
    cuts: String(now.cuts) === String(start.cuts) ? null : now.cuts.map((cut) => data.boundaries[cut]).join(',') || 'none',
    ipus: now.ipus === start.ipus ? null : now.ipus,
    memory: String(now.memories) === String(memories) ? null : now.memories[0],
    reserve: String(now.reserves) === String(reservesOf(now.memories)) ? null : common(now.reserves),
  });
  let news = '';
  return {
    data, last, positions, start, mostIpus, limitsOf, judged, stepOf, cutsOf, wanted, tried: () => judged(wanted()),
    /** The best split for the number of IPUs, if it is known. */
    best: () => data.best.find((own) => own.ipus === wanted().ipus),
    /** Makes the reader try another split or other limits. @param {Partial<Tried>} change @param {string} [said] the change in words, for screen readers */
    choose: (change, said = '') => {
      news = said;
      choose(choiceOf({ ...wanted(), ...change }));
    },
    news: () => news,
    /** Does the reader try anything that differs from the run? */
    isTried: () => Object.values(choiceOf(wanted())).some((value) => value !== null),
    /** Do cuts or limits differ from those of the run? */
    isMoved: () => Object.entries(choiceOf(wanted())).some(([key, value]) => key !== 'ipus' && value !== null),
  };
};

/** The sum over the positions of a stage. @param {number[]} list @param {[number, number]} range */
const sumOf = (list, range) => list.slice(...range).reduce((a, b) => a + b, 0);

/** The cycles of copies between IPUs in a step. In each slot, the IPU that sends or receives the most
 * bytes decides. @param {number} bandwidth in bytes per second @param {number[][]} sent bytes by cut, then by pass
 * @param {number} batches */
const copyCycles = (bandwidth, sent, batches) => {
  const clock = report.provenance.target.clock_hz;
  if (!sent.length || !clock) return 0;
  const { isSerial, every, through } = stepOrder(sent.length + 1);
  /** The most bytes in slots with even numbers, and in slots with odd numbers. */
  const most = [0, 0];
  [...sent, [0, 0]].forEach((after, stage) => {
    const before = sent[stage - 1] ?? [0, 0];
    if (isSerial) most[0] += after[0] + after[1];
    else if (every === 2) most[stage % 2] = Math.max(most[stage % 2], ...after);
    else most.fill(Math.max(most[0], before[0] + after[1], before[1] + after[0]));
  });
  const [even, odd] = most.map((own) => Number((BigInt(own) * BigInt(clock) + BigInt(bandwidth) - 1n) / BigInt(bandwidth)));
  const slots = (batches - 1) * every + through;
  return isSerial ? even * batches : odd * Math.floor(slots / 2) + even * Math.ceil(slots / 2);
};

/** The number that all entries of a list have; null if entries differ. @param {number[]} list */
const common = (list) => list.every((one) => one === list[0]) ? list[0] : null;

/** The report's numbers of other splits; null if it has none. @type {?Known} */
let known = null;

/** A word of a command line with the quotes that a shell needs. @param {string} word */
const quoted = (word) => /^[\w/.,:=@%+-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;

/** The command line that judges the split that the reader tries; empty if the report was not made by a command, or a
 * name cannot be typed. @param {Known} known */
const commandOf = (known) => {
  const words = known.data.arguments;
  // Positions from 1 on as `--splits` reads them.
  const names = report.layers.slice(1).map((own) => own.name ?? '');
  const isPlainWord = (/** @type {string} */ word) => printable(word) === word && !/[\n\ufffd]/.test(word);
  const isRead = (/** @type {string} */ name) => !!name && name.trim() === name && isPlainWord(name);
  if (!words.length || new Set(names).size < names.length || !names.every(isRead) || !words.every(isPlainWord)) return '';
  const now = known.wanted();
  const ofIpus = (/** @type {number[]} */ list) => list.length > 1 ? list.slice(0, now.ipus) : list;
  const memory = common(now.reserves) === null
    ? [`--mem-per-tile=${known.limitsOf(now)}`]
    : [`--mem-per-tile=${ofIpus(now.memories)}`, ...(now.reserves[0] ? [`--reserve=${now.reserves[0]}`] : [])];
  const starts = now.cuts.map((cut) => names[known.data.boundaries[cut] - 1]);
  const splits = starts.map((name) => name.replaceAll('\\', '\\\\').replaceAll(',', '\\,')).join(',');
  const ipus = now.ipus * (report.split?.replicas ?? 1);
  return ['popliner', ...words, `--num-ipus=${ipus}`, ...memory, `--splits=${splits}`].map(quoted).join(' ');
};
