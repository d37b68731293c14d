// The cuts of a split, to be moved. Nothing is searched here: the numbers of a split
// are sums and comparisons of the bytes of ranges, which the page has for each.
(() => {
  /**
   * @typedef {{name: string, rule: string, position?: number, ipu?: number,
   *   first?: number, last?: number}} Constraint
   * @typedef {{ipus: number, fits: boolean, ends: number[]}} Best
   * @typedef {object} Data
   * @property {number[]} boundaries positions at which a stage may begin or end
   * @property {number} max_stages
   * @property {boolean} by_stages_after
   * @property {string} bytes by range, packed
   * @property {number[]} cut_bytes by boundary but the first and the last
   * @property {?{once: number[], recomputed: number[], recomputed_last: number[],
   *   is_out_first: boolean}} cycles of a micro-batch by position
   * @property {string[]} layers shown names by position
   * @property {?{names: string[], arguments: string[]}} command
   * @property {number} ipus
   * @property {number[]} memories of a tile: one for all IPUs, or one for each
   * @property {number[]} reserves what is kept free of each; the rest is the limit
   * @property {boolean} by_peak is the best split the one with the lowest peak?
   * @property {number[]} ends of the stages of the split that the page is about
   * @property {Best[]} best
   * @property {Constraint[]} constraints
   */
  /** @type {?Data} */
  const data = dataOf('what-if-data');
  if (!data) return;
  /** @param {string} name */
  const part = (name) => byId('what-if-' + name);
  const last = data.boundaries.length - 1;
  const positions = data.boundaries[last];

  // Where the numbers of the ranges from one boundary to each later one begin.
  /** @type {number[][]} */
  const places = [];
  let count = 0;
  /** @param {number} end */
  const counted = (end) => data.by_stages_after && end < last
    ? Math.min(data.max_stages - 1, last - end) : 1;
  for (let start = 0; start < last; start++) {
    places.push([]);
    for (let end = start + 1; end <= last; end++) {
      places[start][end] = count;
      count += counted(end);
    }
  }
  const bytes = unpacked(data.bytes);

  /** What is tried now: cuts are places in `boundaries`. */
  const now = {
    cuts: /** @type {number[]} */ ([]),
    ipus: data.ipus,
    memories: data.memories,
    reserves: data.reserves,
  };

  /** @param {number[]} memories @param {number[]} reserves */
  const lessened = (memories, reserves) => memories.map((memory, ipu) => memory - reserves[ipu]);

  /** The one number of a list where all are the same; null where they differ.
   * @param {number[]} list */
  const common = (list) => list.every((one) => one === list[0]) ? list[0] : null;

  /** In tenths of a per cent, rounded up. @param {number} part @param {number} whole */
  const share = (part, whole) => {
    const tenths = (BigInt(part) * 1000n + BigInt(whole) - 1n) / BigInt(whole);
    return `${tenths / 10n}.${tenths % 10n} %`;
  };

  /** Of the IPUs that there are. @param {number[]} list */
  const ofIpus = (list) => list.length > 1 ? list.slice(0, now.ipus) : list;

  /** The limits of the IPUs that there are. */
  const limits = () => ofIpus(lessened(now.memories, now.reserves));

  /** @param {number} stage */
  const limitOf = (stage) => now.memories.length > 1
    ? limits()[stage] ?? Math.max(...limits()) : limits()[0];

  /**
   * The cycles of a micro-batch in a stage, with what is recomputed there.
   * @param {number[]} range @param {boolean} isFollowed do other stages follow in the pipeline?
   */
  const cyclesOf = (range, isFollowed) => {
    if (!data.cycles) return null;
    const { once, recomputed, recomputed_last: last } = data.cycles;
    /** @param {number[]} list */
    const sum = (list) => list.slice(...range).reduce((a, b) => a + b, 0);
    return sum(once) + sum(isFollowed ? recomputed : last);
  };

  /** The numbers of a split. @param {number[]} cuts */
  const weighed = (cuts) => {
    const ends = [...cuts, last];
    const stages = ends.map((end, stage) => {
      const start = stage ? ends[stage - 1] : 0;
      const after = ends.length - 1 - stage;
      const first = data.by_stages_after && end < last ? 1 : 0;
      const own = bytes[places[start][end] + (data.by_stages_after ? after - first : 0)];
      const range = [data.boundaries[start], data.boundaries[end]];
      const isFollowed = after > 0 || ends.length > 1 && !!data.cycles?.is_out_first;
      const cycles = cyclesOf(range, isFollowed);
      return { range, bytes: own, limit: limitOf(stage), cycles };
    });
    return {
      stages,
      peak: Math.max(...stages.map((stage) => stage.bytes)),
      cuts: cuts.map((cut) => data.cut_bytes[cut - 1]),
      cutBytes: cuts.reduce((all, cut) => all + data.cut_bytes[cut - 1], 0),
      slowest: data.cycles && Math.max(...stages.map((stage) => stage.cycles ?? 0)),
    };
  };

  /** @param {Constraint} rule @param {ReturnType<typeof weighed>} split */
  const isKept = (rule, split) => {
    /** @param {number} position */
    const stage = (position) => split.stages.findIndex((own) => position < own.range[1]);
    const at = rule.position ?? 0;
    switch (rule.rule) {
      case 'pin': return stage(at) === rule.ipu;
      case 'together': return stage(rule.first ?? 0) === stage(rule.last ?? 0);
      case 'cut-after': return stage(at) !== stage(at + 1);
      default: return stage(at) === stage(at + 1);
    }
  };

  /** Why a split does not fit; nothing where it does. @param {ReturnType<typeof weighed>} split */
  const faults = (split) => {
    const found = split.stages.flatMap((own, ipu) => own.bytes > own.limit
      ? [`IPU ${ipu} is ${grouped(own.bytes - own.limit)} bytes over its limit`] : []);
    if (split.stages.length > now.ipus) {
      found.push(`it has ${split.stages.length} stages, and the number of IPUs is ${now.ipus}`);
    }
    return found;
  };

  /** The layers of a stage. @param {number[]} range */
  const layers = ([start, end]) => {
    const names = data.layers.slice(start, end);
    return names.length > 8
      ? `${names[0]} \u2026 ${names[names.length - 1]} (${names.length})` : names.join(' ');
  };

  /**
   * Adds an element with a number; `at` is where it is in the JSON form of a run that
   * judges this split.
   * @param {Element} parent @param {string} kind @param {string} text @param {string} at
   * @param {string} [look]
   */
  const addNumber = (parent, kind, text, at, look) => {
    const own = add(parent, kind, text, look);
    if (at) own.dataset.now = at;
  };

  /** @param {ReturnType<typeof weighed>} split */
  const showTable = (split) => {
    const body = part('stages');
    body.replaceChildren();
    split.stages.forEach((own, stage) => {
      const row = add(body, 'tr', '');
      const tile = `/split/stages/${stage}/fullest_tile`;
      const isOver = own.bytes > own.limit;
      add(row, 'th', `IPU ${stage}`).setAttribute('scope', 'row');
      const look = isOver ? 'n bad' : 'n';
      add(row, 'td', layers(own.range), 'name list');
      addNumber(row, 'td', grouped(own.bytes), tile + '/bytes', 'n');
      addNumber(row, 'td', grouped(own.limit), tile + '/limit', 'n');
      add(row, 'td', share(own.bytes, own.limit) + (isOver ? ', over' : ''), look);
      addNumber(row, 'td', grouped(own.limit - own.bytes), tile + '/free', look);
      if (data.cycles) {
        addNumber(row, 'td', grouped(own.cycles ?? 0), `/execution/stages/${stage}/micro_batch_cycles`, 'n');
      }
      const cut = stage < split.cuts.length ? `/cuts/${stage}/bytes` : '';
      addNumber(row, 'td', cut ? grouped(split.cuts[stage]) : '\u2013', cut, 'n');
    });
  };

  /** @param {ReturnType<typeof weighed>} split @param {string[]} why @param {string[]} broken */
  const showVerdict = (split, why, broken) => {
    const fits = !why.length && !broken.length;
    const verdict = part('verdict');
    verdict.className = fits ? 'good' : 'bad';
    verdict.dataset.fits = String(fits);
    const reasons = [...why, ...broken.map((name) => 'it breaks ' + name)];
    const said = fits ? 'This split fits.' : `This split does not fit: ${reasons.join('; ')}.`;
    verdict.textContent = news + said;
    const totals = part('totals');
    totals.replaceChildren();
    /** @param {string} name @param {number} number @param {string} unit */
    const total = (name, number, unit) => {
      const row = add(totals, 'div', '');
      add(row, 'dt', name);
      const own = add(row, 'dd', grouped(number));
      add(own, 'small', unit);
    };
    total('Fullest tile of any stage', split.peak, 'bytes');
    total('Over all cuts', split.cutBytes, 'bytes');
    if (split.slowest !== null) total('Slowest stage', split.slowest, 'cycles');
  };

  /** As a shell reads it back. @param {string} word */
  const quoted = (word) => /^[\w/.,:=@%+-]+$/.test(word)
    ? word : `'${word.replaceAll("'", "'\\''")}'`;

  const showCommand = () => {
    if (!data.command) return;
    const { names, arguments: words } = data.command;
    const splits = now.cuts.map((cut) => names[data.boundaries[cut] - 1]).join(',');
    const options = [`--num-ipus=${now.ipus}`, ...memoryOptions(words), `--check-splits=${splits}`];
    part('command').textContent = ['popliner', ...words, ...options].map(quoted).join(' ');
  };

  /** The memory and what is kept free of it; the limits where no one number is, or where
   * a calibration stands in for it. @param {string[]} words */
  const memoryOptions = (words) => {
    const reserve = common(now.reserves);
    if (reserve === null || words.some((word) => word.startsWith('--calibration'))) {
      return [`--mem-per-tile=${limits()}`];
    }
    const memory = `--mem-per-tile=${ofIpus(now.memories)}`;
    return reserve ? [memory, `--reserve=${reserve}`] : [memory];
  };

  /** The places of the cuts of stages that end at these positions. @param {number[]} ends */
  const cutsOf = (ends) => ends.slice(0, -1).map((end) => data.boundaries.indexOf(end));

  /** The best split for the number of IPUs, if it is known. */
  const best = () => data.best.find((own) => own.ipus === now.ipus);

  const showBest = () => {
    const own = best();
    /** @type {HTMLButtonElement} */ (part('take')).disabled = !own;
    const row = part('best');
    row.replaceChildren();
    if (!own) {
      add(row, 'span', `For ${now.ipus} IPUs no split is known here.`);
      return;
    }
    const isSame = String(lessened(now.memories, now.reserves)) === String(lessened(data.memories, data.reserves));
    const isLowest = data.by_peak && data.memories.length === 1;
    const split = weighed(cutsOf(own.ends));
    const fits = !faults(split).length;
    const rank = isLowest || (isSame && !own.fits) ? 'with the lowest peak'
      : isSame ? 'that is the best' : 'that is the best within the limits of the run';
    add(row, 'span', `The split for at most ${now.ipus} IPUs ${rank}: fullest tile `);
    addNumber(row, 'span', grouped(split.peak), '/given/best_fullest_tile_bytes');
    add(row, 'span', ` bytes, ${fits ? 'fits' : 'does not fit'}; over all cuts `);
    addNumber(row, 'span', grouped(split.cutBytes), '/given/best_cut_bytes');
    add(row, 'span', ' bytes');
    if (split.slowest !== null) {
      add(row, 'span', '; slowest stage ');
      addNumber(row, 'span', grouped(split.slowest), '/given/best_slowest_stage_cycles');
      add(row, 'span', ' cycles');
    }
    add(row, 'span', isSame || isLowest ? '.' : '. Within other limits another may be better: run the command below.');
    row.dataset.fits = String(fits);
  };

  /** Where a boundary is on the strip. @param {number} place */
  const left = (place) => `${(data.boundaries[place] / positions) * 100}%`;

  /** Between which boundaries a cut can be. @param {number} cut */
  const room = (cut) => [(now.cuts[cut - 1] ?? 0) + 1, (now.cuts[cut + 1] ?? last) - 1];

  /** @type {{stages: HTMLElement[], handles: HTMLElement[]}} */
  let drawn = { stages: [], handles: [] };
  /** What had the focus last of the strip: a cut or a stage. @type {?number} */
  let chosenCut = null;
  /** @type {?number} */
  let chosenStage = null;
  /** What was just done, for who hears the verdict. */
  let news = '';

  /** The boundaries inside of a stage. @param {number} stage */
  const inside = (stage) => {
    const [from, to] = [now.cuts[stage - 1] ?? 0, now.cuts[stage] ?? last];
    return [...data.boundaries.keys()].slice(from + 1, to);
  };

  /** Are the bytes known of a split with a stage more? */
  const hasRoom = () => now.cuts.length + 1 < data.max_stages;

  /** Which stage the button cuts in two: the chosen one, or the fullest that can be; -1
   * where none can. @param {ReturnType<typeof weighed>} split */
  const stageToCut = (split) => {
    if (!hasRoom()) return -1;
    if (chosenStage !== null && inside(chosenStage).length) return chosenStage;
    const fill = split.stages.map((own, stage) => inside(stage).length ? own.bytes / own.limit : -1);
    const most = Math.max(...fill);
    return most < 0 ? -1 : fill.indexOf(most);
  };

  /** @param {ReturnType<typeof weighed>} split */
  const showButtons = (split) => {
    const [adding, removing] = ['add', 'remove'].map((name) => /** @type {HTMLButtonElement} */ (part(name)));
    adding.disabled = stageToCut(split) < 0;
    removing.disabled = chosenCut === null;
    removing.textContent = chosenCut === null
      ? 'Remove this cut' : `Remove the cut between IPU ${chosenCut} and IPU ${chosenCut + 1}`;
    part('most').textContent = hasRoom()
      ? '' : `Splits of more than ${data.max_stages} stages are not known here.`;
    drawn.handles.forEach((handle, cut) => handle.classList.toggle('is-chosen', cut === chosenCut));
  };

  /** @param {ReturnType<typeof weighed>} split */
  const showStrip = (split) => {
    const ends = [0, ...now.cuts, last];
    drawn.stages.forEach((box, stage) => {
      const own = split.stages[stage];
      box.style.left = left(ends[stage]);
      box.style.width = `${((own.range[1] - own.range[0]) / positions) * 100}%`;
      box.classList.toggle('is-over', own.bytes > own.limit);
      const fill = /** @type {HTMLElement} */ (box.firstChild);
      fill.style.height = `${Math.min(own.bytes / own.limit, 1) * 100}%`;
      box.setAttribute('aria-label', `IPU ${stage}, ${layers(own.range)}: ${grouped(own.bytes)} `
        + `of ${grouped(own.limit)} bytes; cut it in two`);
    });
    drawn.handles.forEach((handle, cut) => {
      const place = now.cuts[cut];
      const at = data.boundaries[place];
      const [from, to] = room(cut);
      handle.style.left = left(place);
      handle.setAttribute('aria-valuemin', String(data.boundaries[from]));
      handle.setAttribute('aria-valuemax', String(data.boundaries[to]));
      handle.setAttribute('aria-valuenow', String(at));
      handle.setAttribute('aria-valuetext', between(place));
    });
  };

  const show = () => {
    const split = weighed(now.cuts);
    const broken = data.constraints.filter((rule) => !isKept(rule, split)).map((rule) => rule.name);
    showStrip(split);
    showTable(split);
    showVerdict(split, faults(split), broken);
    showBest();
    showCommand();
    showButtons(split);
  };

  /** @param {number} cut @param {number} place */
  const move = (cut, place) => {
    const [from, to] = room(cut);
    now.cuts[cut] = Math.min(Math.max(place, from), to);
    news = '';
    show();
  };

  /** Which layers a boundary is between. @param {number} place */
  const between = (place) => {
    const at = data.boundaries[place];
    return `after ${data.layers[at - 1]}, before ${data.layers[at]}`;
  };

  /** @param {number} place */
  const addCut = (place) => {
    if (!hasRoom()) return;
    const cuts = [...now.cuts, place].sort((a, b) => a - b);
    news = `Cut added ${between(place)}. `;
    rebuild(cuts);
    drawn.handles[cuts.indexOf(place)].focus();
  };

  /** Cuts a stage in two where the fuller half is least full. @param {number} stage */
  const halve = (stage) => {
    const peak = (/** @type {number} */ place) => {
      const { stages } = weighed([...now.cuts.slice(0, stage), place, ...now.cuts.slice(stage)]);
      return Math.max(stages[stage].bytes, stages[stage + 1].bytes);
    };
    const all = hasRoom() ? inside(stage).map((place) => ({ place, peak: peak(place) })) : [];
    if (all.length) addCut(all.reduce((best, own) => own.peak < best.peak ? own : best).place);
  };

  /** @param {number} cut */
  const removeCut = (cut) => {
    news = `Cut removed ${between(now.cuts[cut])}. `;
    rebuild(now.cuts.filter((_, own) => own !== cut));
    chosenCut = now.cuts.length ? Math.min(cut, now.cuts.length - 1) : null;
    show();
  };

  /** @param {KeyboardEvent} event @param {number} cut */
  const press = (event, cut) => {
    const place = now.cuts[cut];
    const [from, to] = room(cut);
    const goal = goalOf(event, place, 5, from, to);
    if (!isPlain(event)) return;
    if (event.key === 'Delete' || event.key === 'Backspace') {
      event.preventDefault();
      removeCut(cut);
      (chosenCut === null ? part('add') : drawn.handles[chosenCut]).focus();
    } else if (goal !== undefined) {
      event.preventDefault();
      move(cut, goal);
    }
  };

  /** Of some boundaries that which is nearest to the pointer.
   * @param {MouseEvent} event @param {number[]} all */
  const nearest = (event, all) => {
    const at = shareOf(part('strip'), event) * positions;
    /** @param {number} place */
    const far = (place) => Math.abs(data.boundaries[place] - at);
    return all.reduce((near, place) => far(place) < far(near) ? place : near);
  };

  /** @param {PointerEvent} event @param {number} cut */
  const drag = (event, cut) => {
    if (!drawn.handles[cut].hasPointerCapture(event.pointerId)) return;
    move(cut, nearest(event, [...data.boundaries.keys()]));
  };

  /** @param {number} cut */
  const handleOf = (cut) => {
    const handle = add(part('strip'), 'div', '', 'handle');
    handle.tabIndex = 0;
    handle.setAttribute('role', 'slider');
    handle.setAttribute('aria-label', `Cut between IPU ${cut} and IPU ${cut + 1}`);
    handle.addEventListener('focus', () => choose(cut, null));
    handle.addEventListener('keydown', (event) => press(event, cut));
    handle.addEventListener('pointerdown', (event) => {
      handle.setPointerCapture(event.pointerId);
      handle.focus();
      event.preventDefault();
    });
    handle.addEventListener('pointermove', (event) => drag(event, cut));
    return handle;
  };

  /** @param {?number} cut @param {?number} stage */
  const choose = (cut, stage) => {
    [chosenCut, chosenStage] = [cut, stage];
    showButtons(weighed(now.cuts));
  };

  /** @param {number} stage */
  const stageOf = (stage) => {
    const box = add(part('strip'), 'div', '', 'stage');
    add(box, 'div', '', 'fill');
    add(box, 'span', `IPU ${stage}`);
    box.tabIndex = 0;
    box.setAttribute('role', 'button');
    box.addEventListener('focus', () => choose(null, stage));
    box.addEventListener('keydown', (event) => {
      if (!isPlain(event) || !['Enter', ' '].includes(event.key)) return;
      event.preventDefault();
      halve(stage);
    });
    box.addEventListener('dblclick', (event) => {
      const free = inside(stage);
      if (free.length) addCut(nearest(event, free));
    });
    return box;
  };

  /** Shows a split with other cuts than before. @param {number[]} cuts */
  const rebuild = (cuts) => {
    now.cuts = cuts;
    [chosenCut, chosenStage] = [null, null];
    part('strip').replaceChildren();
    drawn = { stages: [...cuts, last].map((_, stage) => stageOf(stage)), handles: [] };
    drawn.handles = cuts.map((_, cut) => handleOf(cut));
    show();
  };

  /** Shows a known split. @param {number[]} ends */
  const take = (ends) => {
    news = '';
    rebuild(cutsOf(ends));
  };

  const [ipus, memory, reserve] = ['ipus', 'memory', 'reserve']
    .map((name) => /** @type {HTMLInputElement} */ (part(name)));

  /** A number in a field; nothing where there is no one number. @param {?number} number */
  const entered = (number) => number === null ? '' : String(number);

  const reset = () => {
    now.ipus = data.ipus;
    [now.memories, now.reserves] = [data.memories, data.reserves];
    ipus.value = String(data.ipus);
    memory.value = entered(data.memories.length > 1 ? null : data.memories[0]);
    reserve.value = entered(common(data.reserves));
    reserve.setCustomValidity('');
    take(data.ends);
  };

  /** What was entered; an empty field means what the run had. */
  const readMemory = () => {
    const memories = memory.value ? [memory.valueAsNumber] : data.memories;
    const own = memory.value ? [common(data.reserves) ?? 0] : data.reserves;
    const reserves = reserve.value ? memories.map(() => reserve.valueAsNumber) : own;
    const isEnough = Math.min(...lessened(memories, reserves)) > 0;
    reserve.setCustomValidity(isEnough ? '' : 'This leaves nothing of a tile: keep less free.');
    if (!memory.validity.valid || !reserve.validity.valid) return;
    [now.memories, now.reserves] = [memories, reserves];
    news = '';
    show();
  };

  ipus.addEventListener('input', () => {
    if (!ipus.validity.valid || !ipus.value) return;
    now.ipus = ipus.valueAsNumber;
    news = '';
    show();
  });
  memory.addEventListener('input', readMemory);
  reserve.addEventListener('input', readMemory);
  part('add').addEventListener('click', () => halve(stageToCut(weighed(now.cuts))));
  part('remove').addEventListener('click', () => {
    if (chosenCut === null) return;
    removeCut(chosenCut);
    // A button that is disabled loses the focus.
    if (chosenCut === null) part('add').focus();
  });
  part('take').addEventListener('click', () => take(best()?.ends ?? data.ends));
  part('reset').addEventListener('click', reset);
  part('copy').addEventListener('click', async () => {
    const command = part('command');
    getSelection()?.selectAllChildren(command);
    try {
      await navigator.clipboard.writeText(command.textContent || '');
      part('copied').textContent = 'Copied.';
    } catch {
      part('copied').textContent = 'Selected: copy it with the keyboard.';
    }
  });
  part('some').hidden = data.boundaries.length > positions;
  part('typed').hidden = !data.command;
  part('untyped').hidden = !!data.command;
  part('without').hidden = true;
  part('tool').hidden = false;
  reset();
})();
