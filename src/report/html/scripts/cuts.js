// The numbers of a split whose cuts are moved. Nothing is searched here: they are sums and
// comparisons of the bytes of ranges, which the report has for each.

/** @typedef {{name: string, rule: string, position?: number, ipu?: number, first?: number, last?: number}} Constraint */
/** @typedef {{cuts: number[], ipus: number, memories: number[], reserves: number[]}} Tried cuts are
 *   places in the list of boundaries */

/** All that is known of other splits; null where nothing is, or not exactly. */
const tryable = () => {
  const own = report.what_if;
  if (!own || !report.split || isHuge) return null;
  const last = own.boundaries.length - 1;
  const positions = own.boundaries[last];
  if (report.layers.length !== positions) return null;
  /** Of a micro-batch by position. @type {?{once: number[], recomputed: number[], recomputed_last: number[], is_out_first: boolean}} */
  const cycles = own.cycles ?? null;
  if (cycles && !Number.isSafeInteger([...cycles.once, ...cycles.recomputed].reduce((a, b) => a + b, 0))) return null;

  // Where the numbers of the ranges from one boundary to each later one begin.
  /** @type {number[][]} */
  const places = [];
  let count = 0;
  /** @param {number} end */
  const inOne = (end) => own.by_stages_after && end < last ? Math.min(own.max_stages - 1, last - end) : 1;
  for (let start = 0; start < last; start++) {
    places.push([]);
    for (let end = start + 1; end <= last; end++) {
      places[start][end] = count;
      count += inOne(end);
    }
  }

  /** What a tile has and what is kept free of it, once or for each limit. */
  const { limits: several, limit } = report.split;
  const limits = several ?? [limit];
  let said = (own.memories ?? []).map((/** @type {number} */ memory, /** @type {number} */ ipu) => [memory, own.reserves[ipu]]);
  if (limits.length === 1) said = said.filter((/** @type {number[]} */ one, /** @type {number} */ place) => !place || String(one) !== String(said[0]));
  const isSaid = String(said.map((/** @type {number[]} */ one) => one[0] - one[1])) === String(limits);
  const pairs = isSaid ? said : limits.map((/** @type {number} */ one) => [one, 0]);
  const memories = /** @type {number[]} */ (pairs.map((/** @type {number[]} */ one) => one[0]));
  const reserves = /** @type {number[]} */ (pairs.map((/** @type {number[]} */ one) => one[1]));

  /** The limits of the IPUs that there are. @param {Tried} now */
  const limitsOf = (now) => {
    const all = now.memories.map((memory, ipu) => memory - now.reserves[ipu]);
    return all.length > 1 ? all.slice(0, now.ipus) : all;
  };

  /** The cycles of a micro-batch in a stage, with what is recomputed there.
   * @param {[number, number]} range @param {boolean} isFollowed do other stages follow in the pipeline? */
  const cyclesOf = (range, isFollowed) => {
    if (!cycles) return null;
    const sum = (/** @type {number[]} */ list) => list.slice(...range).reduce((a, b) => a + b, 0);
    return sum(cycles.once) + sum(isFollowed ? cycles.recomputed : cycles.recomputed_last);
  };

  /** The numbers of a split. @param {Tried} now */
  const computed = (now) => {
    const ends = [...now.cuts, last];
    const all = limitsOf(now);
    const stages = ends.map((end, stage) => {
      const start = stage ? ends[stage - 1] : 0;
      const after = ends.length - 1 - stage;
      const first = own.by_stages_after && end < last ? 1 : 0;
      const bytes = /** @type {number} */ (own.bytes[places[start][end] + (own.by_stages_after ? after - first : 0)]);
      const range = /** @type {[number, number]} */ ([own.boundaries[start], own.boundaries[end]]);
      const limit = all.length > 1 ? all[stage] ?? Math.max(...all) : all[0];
      const isFollowed = after > 0 || ends.length > 1 && !!cycles?.is_out_first;
      return { range, bytes, limit, cycles: cyclesOf(range, isFollowed) };
    });
    return {
      stages,
      peak: Math.max(...stages.map((stage) => stage.bytes)),
      cuts: /** @type {number[]} */ (now.cuts.map((cut) => own.cut_bytes[cut - 1])),
      cutBytes: now.cuts.reduce((sum, cut) => sum + own.cut_bytes[cut - 1], 0),
      slowest: cycles ? Math.max(...stages.map((stage) => stage.cycles ?? 0)) : null,
    };
  };

  /** @param {Constraint} rule @param {ReturnType<typeof computed>} split */
  const isKept = (rule, split) => {
    const stage = (/** @type {number} */ position) => split.stages.findIndex((one) => position < one.range[1]);
    const place = rule.position ?? 0;
    switch (rule.rule) {
      case 'pin': return stage(place) === rule.ipu;
      case 'together': return stage(rule.first ?? 0) === stage(rule.last ?? 0);
      case 'cut-after': return stage(place) !== stage(place + 1);
      default: return stage(place) === stage(place + 1);
    }
  };

  /** Why a split does not fit; nothing where it does. @param {Tried} now
   * @param {ReturnType<typeof computed>} split */
  const faults = (now, split) => {
    const found = split.stages.flatMap((one, ipu) => one.bytes > one.limit
      ? [`IPU ${ipu} is ${counted(one.bytes - one.limit, 'byte')} over its limit`] : []);
    if (split.stages.length > now.ipus) {
      found.push(`it has ${counted(split.stages.length, 'stage')}, and the number of IPUs is ${now.ipus}`);
    }
    return found;
  };

  /** @param {ReturnType<typeof computed>} split @returns {string[]} */
  const broken = (split) => own.constraints.filter((/** @type {Constraint} */ rule) => !isKept(rule, split))
    .map((/** @type {Constraint} */ rule) => short(rule.name));

  /** The places of the cuts of stages that end at these positions. @param {number[]} ends @returns {number[]} */
  const cutsOf = (ends) => ends.slice(0, -1).map((end) => own.boundaries.indexOf(end));

  const ends = report.split.stages.map((/** @type {any} */ stage) => stage.positions.end);
  const start = { cuts: cutsOf(ends), ipus: report.split.max_stages, memories, reserves };
  return { own, last, positions, start, limitsOf, computed, faults, broken, cutsOf };
};

/** As a shell reads it back. @param {string} word */
const quoted = (word) => /^[\w/.,:=@%+-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;

/** The names of positions as `--check-splits` reads them; null where one cannot be typed,
 * or no command made the report. */
const typedNames = () => {
  const words = report.what_if.arguments;
  const first = report.pseudo_layers === 'none-first' ? 'None' : 'In';
  const names = report.layers.map((/** @type {any} */ own) => own.name ?? first);
  const isPlainWord = (/** @type {string} */ word) => printable(word) === word && !/[\n\ufffd]/.test(word);
  const isRead = (/** @type {string} */ name) => name && name.trim() === name && isPlainWord(name);
  if (!words.length || new Set(names).size < names.length || !names.every(isRead) || !words.every(isPlainWord)) return null;
  return names.map((/** @type {string} */ name) => name.replaceAll('\\', '\\\\').replaceAll(',', '\\,'));
};

/** The command line that judges a split; empty where there is none.
 * @param {NonNullable<ReturnType<typeof tryable>>} known @param {Tried} now */
const commandOf = (known, now) => {
  const names = typedNames();
  if (!names) return '';
  const words = /** @type {string[]} */ (known.own.arguments);
  const ofIpus = (/** @type {number[]} */ list) => list.length > 1 ? list.slice(0, now.ipus) : list;
  const isCommon = now.reserves.every((own) => own === now.reserves[0]);
  const memory = !isCommon || words.some((word) => word.startsWith('--calibration'))
    ? [`--mem-per-tile=${known.limitsOf(now)}`]
    : [`--mem-per-tile=${ofIpus(now.memories)}`, ...(now.reserves[0] ? [`--reserve=${now.reserves[0]}`] : [])];
  const splits = now.cuts.map((cut) => names[known.own.boundaries[cut] - 1]).join(',');
  return ['popliner', ...words, `--num-ipus=${now.ipus}`, ...memory, `--check-splits=${splits}`].map(quoted).join(' ');
};
