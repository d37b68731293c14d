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
   * @property {string} bytes by range, each less the one before, in base 36
   * @property {number[]} cut_bytes by boundary but the first and the last
   * @property {?number[]} cycles by position
   * @property {string[]} layers shown names by position
   * @property {?{names: string[], arguments: string[]}} command
   * @property {number} ipus
   * @property {number[]} limits one for all IPUs, or one for each
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
  const now = { cuts: /** @type {number[]} */ ([]), ipus: data.ipus, limits: data.limits };

  /** In tenths of a per cent, rounded up. @param {number} part @param {number} whole */
  const share = (part, whole) => {
    const tenths = (BigInt(part) * 1000n + BigInt(whole) - 1n) / BigInt(whole);
    return `${tenths / 10n}.${tenths % 10n} %`;
  };

  /** The limits of the IPUs that there are. */
  const limits = () => now.limits.length > 1 ? now.limits.slice(0, now.ipus) : now.limits;

  /** @param {number} stage */
  const limitOf = (stage) => now.limits.length > 1
    ? limits()[stage] ?? Math.max(...limits()) : now.limits[0];

  /** The numbers of a split. @param {number[]} cuts */
  const weighed = (cuts) => {
    const ends = [...cuts, last];
    const stages = ends.map((end, stage) => {
      const start = stage ? ends[stage - 1] : 0;
      const after = ends.length - 1 - stage;
      const first = data.by_stages_after && end < last ? 1 : 0;
      const own = bytes[places[start][end] + (data.by_stages_after ? after - first : 0)];
      const range = [data.boundaries[start], data.boundaries[end]];
      const cycles = data.cycles && data.cycles.slice(...range).reduce((a, b) => a + b, 0);
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
        addNumber(row, 'td', grouped(own.cycles ?? 0), `/execution/stages/${stage}/cycles`, 'n');
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
    verdict.textContent = fits ? 'This split fits.' : `This split does not fit: ${reasons.join('; ')}.`;
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
    const options = [`--num-ipus=${now.ipus}`, `--mem-per-tile=${limits()}`, `--check-splits=${splits}`];
    part('command').textContent = ['popliner', ...words, ...options].map(quoted).join(' ');
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
    const isSame = now.limits === data.limits;
    const isLowest = data.by_peak && data.limits.length === 1;
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
    });
    drawn.handles.forEach((handle, cut) => {
      const place = now.cuts[cut];
      const at = data.boundaries[place];
      const [from, to] = room(cut);
      handle.style.left = left(place);
      handle.setAttribute('aria-valuemin', String(data.boundaries[from]));
      handle.setAttribute('aria-valuemax', String(data.boundaries[to]));
      handle.setAttribute('aria-valuenow', String(at));
      handle.setAttribute('aria-valuetext', `after ${data.layers[at - 1]}, before ${data.layers[at]}`);
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
  };

  /** @param {number} cut @param {number} place */
  const move = (cut, place) => {
    const [from, to] = room(cut);
    now.cuts[cut] = Math.min(Math.max(place, from), to);
    show();
  };

  /** @param {KeyboardEvent} event @param {number} cut */
  const press = (event, cut) => {
    const place = now.cuts[cut];
    const [from, to] = room(cut);
    /** @type {Record<string, number>} */
    const goals = {
      ArrowLeft: place - 1, ArrowDown: place - 1, ArrowRight: place + 1, ArrowUp: place + 1,
      PageDown: place - 5, PageUp: place + 5, Home: from, End: to,
    };
    if (!isPlain(event) || !(event.key in goals)) return;
    event.preventDefault();
    move(cut, goals[event.key]);
  };

  /** @param {PointerEvent} event @param {number} cut */
  const drag = (event, cut) => {
    if (!drawn.handles[cut].hasPointerCapture(event.pointerId)) return;
    const box = part('strip').getBoundingClientRect();
    const at = ((event.clientX - box.left) / box.width) * positions;
    /** @param {number} place */
    const far = (place) => Math.abs(data.boundaries[place] - at);
    const all = data.boundaries.keys();
    move(cut, [...all].reduce((nearest, place) => far(place) < far(nearest) ? place : nearest));
  };

  /** @param {number} cut */
  const handleOf = (cut) => {
    const handle = add(part('strip'), 'div', '', 'handle');
    handle.tabIndex = 0;
    handle.setAttribute('role', 'slider');
    handle.setAttribute('aria-label', `Cut between IPU ${cut} and IPU ${cut + 1}`);
    handle.addEventListener('keydown', (event) => press(event, cut));
    handle.addEventListener('pointerdown', (event) => {
      handle.setPointerCapture(event.pointerId);
      handle.focus();
      event.preventDefault();
    });
    handle.addEventListener('pointermove', (event) => drag(event, cut));
    return handle;
  };

  /** Shows another split. @param {number[]} ends */
  const take = (ends) => {
    now.cuts = cutsOf(ends);
    part('strip').replaceChildren();
    const stages = ends.map((_, stage) => {
      const box = add(part('strip'), 'div', '', 'stage');
      add(box, 'div', '', 'fill');
      add(box, 'span', `IPU ${stage}`);
      return box;
    });
    drawn = { stages, handles: now.cuts.map((_, cut) => handleOf(cut)) };
    show();
  };

  const [ipus, limit] = ['ipus', 'limit'].map((name) => /** @type {HTMLInputElement} */ (part(name)));

  const reset = () => {
    now.ipus = data.ipus;
    now.limits = data.limits;
    ipus.value = String(data.ipus);
    limit.value = data.limits.length > 1 ? '' : String(data.limits[0]);
    take(data.ends);
  };

  ipus.addEventListener('input', () => {
    if (!ipus.validity.valid || !ipus.value) return;
    now.ipus = ipus.valueAsNumber;
    show();
  });
  limit.addEventListener('input', () => {
    if (!limit.validity.valid) return;
    const isOwn = !limit.value || (data.limits.length === 1 && limit.valueAsNumber === data.limits[0]);
    now.limits = isOwn ? data.limits : [limit.valueAsNumber];
    show();
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
