// The split: the cuts that are drawn are those that are moved.

/** @param {HTMLElement} parent */
const addTriedSplit = (parent) => {
  const known = tryable();
  if (!known) {
    add(parent, 'p', 'Cuts cannot be moved here: the report has no numbers of other splits, or they are too large. '
      + '--check-splits judges any split.', 'soft').id = 'what-if-without';
    return;
  }
  const { own: data, last, positions } = known;
  /** @param {string} name */
  const part = (name) => byId('what-if-' + name);
  /** What is tried now. @type {Tried} */
  const now = { ...known.start };
  const tool = addAs(parent, 'div', 'what-if-tool');
  const most = Math.max(report.split.max_stages, ...data.best.map((/** @type {any} */ own) => own.ipus));
  const controls = add(tool, 'div', '', 'controls');
  const ipus = addField(controls, 'IPUs', 'number', 'what-if-ipus', { min: 1, max: most, step: 1 });
  const memory = addField(controls, 'Memory of a tile in bytes', 'number', 'what-if-memory', { min: 1, max: 2 ** 40, step: 1 });
  const reserve = addField(controls, 'Reserve in bytes', 'number', 'what-if-reserve', { min: 0, max: 2 ** 40, step: 1 });
  const strip = addAs(tool, 'div', 'what-if-strip');
  strip.setAttribute('role', 'group');
  strip.setAttribute('aria-label', 'Stages, and the cuts between them');
  addLayerColumns(tool);
  const buttons = add(tool, 'div', '', 'controls');
  const adding = addButton(buttons, 'Add a cut', () => halve(stageToCut(known.computed(now))), 'what-if-add');
  const removing = addButton(buttons, 'Remove this cut', () => {
    if (chosenCut === null) return;
    removeCut(chosenCut);
    // A button that is disabled loses the focus.
    if (chosenCut === null) adding.focus();
  }, 'what-if-remove');
  const taking = addButton(buttons, 'Show the best for this number of IPUs', () => take(best()?.ends ?? [positions]), 'what-if-take');
  addButton(buttons, 'Reset', () => reset(), 'what-if-reset');
  addAs(buttons, 'span', 'what-if-most', '', 'soft');
  add(tool, 'p', 'Drag a cut, or give it the focus and press the arrow keys, Page Up, Page Down, Home or End; Delete removes it. '
    + 'Double-click a stage, or give it the focus and press Enter, to cut it in two. A stage is filled as far as its fullest tile is.', 'soft hint');
  if (data.boundaries.length <= positions) {
    add(tool, 'p', 'The model has too many ranges of layers: cuts can be moved near those of the split and of the best splits only.', 'soft').id = 'what-if-some';
  }
  addAs(tool, 'p', 'what-if-verdict').setAttribute('role', 'status');
  addAs(tool, 'dl', 'what-if-totals', '', 'figures');
  addAs(tool, 'div', 'what-if-table');
  add(tool, 'p', '', 'soft').id = 'what-if-best';
  const command = add(tool, 'p', 'The same on the command line: ', 'copied');
  addAs(command, 'code', 'what-if-command');
  command.append(' ');
  addCopy(command, () => part('command').textContent ?? '', 'Copy', 'what-if-copy', part('command'));

  /** The one number of a list where all are the same; null where they differ. @param {number[]} list */
  const common = (list) => list.every((one) => one === list[0]) ? list[0] : null;
  /** The best split for the number of IPUs, if it is known. */
  const best = () => data.best.find((/** @type {any} */ own) => own.ipus === now.ipus);
  /** Where a boundary is on the strip. @param {number} place */
  const left = (place) => `${(data.boundaries[place] / positions) * 100}%`;
  /** Between which boundaries a cut can be. @param {number} cut */
  const room = (cut) => [(now.cuts[cut - 1] ?? 0) + 1, (now.cuts[cut + 1] ?? last) - 1];
  const names = report.layers.map((/** @type {any} */ own) => layerName(own.name));
  /** @param {number[]} range */
  const layers = ([start, end]) => {
    const own = names.slice(start, end).map((/** @type {string} */ name) => short(name, 60));
    return own.length > 8 ? `${own[0]} \u2026 ${own.at(-1)} (${own.length})` : own.join(' ');
  };
  /** Which layers a boundary is between. @param {number} place */
  const between = (place) => `after ${short(names[data.boundaries[place] - 1], 60)}, before ${short(names[data.boundaries[place]], 60)}`;

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
    return Array.from({ length: Math.max(to - from - 1, 0) }, (_, place) => from + 1 + place);
  };
  /** Are the bytes known of a split with a stage more? */
  const hasRoom = () => now.cuts.length + 1 < data.max_stages;

  /** Which stage the button cuts in two: the chosen one, or the fullest that can be; -1
   * where none can. @param {ReturnType<typeof known.computed>} split */
  const stageToCut = (split) => {
    if (!hasRoom()) return -1;
    if (chosenStage !== null && inside(chosenStage).length) return chosenStage;
    const fill = split.stages.map((own, stage) => inside(stage).length ? own.bytes / own.limit : -1);
    const highest = Math.max(...fill);
    return highest < 0 ? -1 : fill.indexOf(highest);
  };

  /** @param {ReturnType<typeof known.computed>} split */
  const showButtons = (split) => {
    adding.disabled = stageToCut(split) < 0;
    removing.disabled = chosenCut === null;
    removing.textContent = chosenCut === null
      ? 'Remove this cut' : `Remove the cut between IPU ${chosenCut} and IPU ${chosenCut + 1}`;
    taking.disabled = !best();
    part('most').textContent = hasRoom() ? '' : `Splits of more than ${data.max_stages} stages are not known here.`;
    drawn.handles.forEach((handle, cut) => handle.classList.toggle('is-chosen', cut === chosenCut));
  };

  /** @param {ReturnType<typeof known.computed>} split */
  const showStrip = (split) => {
    const ends = [0, ...now.cuts, last];
    drawn.stages.forEach((box, stage) => {
      const own = split.stages[stage];
      box.style.left = left(ends[stage]);
      box.style.width = `${((own.range[1] - own.range[0]) / positions) * 100}%`;
      box.classList.toggle('is-over', own.bytes > own.limit);
      box.classList.toggle('is-chosen', chosen.ipu === stage);
      const share = ofLimit(own.bytes, own.limit);
      const [fill, label] = [...box.children].map((one) => /** @type {HTMLElement} */ (one));
      /** @type {HTMLElement} */ (fill.firstChild).style.height = `${Math.min(own.bytes / own.limit, 1) * 100}%`;
      const width = box.clientWidth;
      label.textContent = width > 90 ? `IPU ${stage}: ${share}` : width > 46 ? `IPU ${stage}` : width > 14 ? String(stage) : '';
      box.dataset.tip = `IPU ${stage}: ${layers(own.range)}\n${grouped(own.bytes)} of ${grouped(own.limit)} bytes, ${share}`;
      box.setAttribute('aria-label', printable(`IPU ${stage}: ${share}, ${layers(own.range)}: ${grouped(own.bytes)} `
        + `of ${grouped(own.limit)} bytes; cut it in two`));
    });
    drawn.handles.forEach((handle, cut) => {
      const place = now.cuts[cut];
      const [from, to] = room(cut);
      handle.style.left = left(place);
      handle.setAttribute('aria-valuemin', String(data.boundaries[from]));
      handle.setAttribute('aria-valuemax', String(data.boundaries[to]));
      handle.setAttribute('aria-valuenow', String(data.boundaries[place]));
      handle.setAttribute('aria-valuetext', printable(between(place)));
    });
  };

  const hasCycles = !!data.cycles;
  const columns = columnsOf([
    ['IPU', 'text'], ['Layers', 'layers'], ['Peak memory', 'bytes', '/fullest_tile/bytes'], ['Limit', 'bytes', '/fullest_tile/limit'],
    ['Of the limit', 'share'], ['Free', 'free', '/fullest_tile/free'], ...(hasCycles ? [/** @type {[string, string]} */ (['Cycles of a micro-batch', 'count'])] : []),
    ['Bytes over the cut after it', 'bytes'],
  ]);
  const table = addTable(part('table'), 'Stages of the split', columns, [], {
    id: 'what-if-stages', choose: (_, ipu) => choose({ ipu }), isChosen: (_, ipu) => ipu === chosen.ipu,
  });

  /** @param {ReturnType<typeof known.computed>} split */
  const showTable = (split) => {
    const isSame = String(now.cuts) === String(known.start.cuts) && String(now.memories) === String(known.start.memories)
      && String(now.reserves) === String(known.start.reserves);
    table.set(split.stages.map((own, stage) => ({
      at: isSame ? `/split/stages/${stage}` : '',
      cells: [`IPU ${stage}`, layers(own.range), own.bytes, own.limit, [own.bytes, own.limit], own.limit - own.bytes,
        ...(hasCycles ? [own.cycles] : []), split.cuts[stage] ?? null],
    })));
    // Where the number is in the report of a run that judges this split.
    document.querySelectorAll('#what-if-stages tbody tr').forEach((row, stage) => {
      const pointers = ['', '', `/split/stages/${stage}/fullest_tile/bytes`, `/split/stages/${stage}/fullest_tile/limit`, '',
        `/split/stages/${stage}/fullest_tile/free`, ...(hasCycles ? [`/execution/stages/${stage}/micro_batch_cycles`] : []),
        stage < split.cuts.length ? `/cuts/${stage}/bytes` : ''];
      row.classList.toggle('is-over', split.stages[stage].bytes > split.stages[stage].limit);
      [...row.children].forEach((cell, place) => {
        if (pointers[place]) /** @type {HTMLElement} */ (cell).dataset.now = pointers[place];
      });
    });
  };

  /** @param {ReturnType<typeof known.computed>} split */
  const showVerdict = (split) => {
    const reasons = [...known.faults(now, split), ...known.broken(split).map((name) => 'it breaks ' + name)];
    const verdict = part('verdict');
    verdict.className = reasons.length ? 'bad' : 'good';
    verdict.dataset.fits = String(!reasons.length);
    verdict.textContent = printable(news + (reasons.length ? `This split does not fit: ${reasons.join('; ')}.` : 'This split fits.'));
    const totals = part('totals');
    totals.replaceChildren();
    /** @param {string} name @param {number} number @param {string} unit */
    const total = (name, number, unit) => {
      const row = add(totals, 'div');
      add(row, 'dt', name);
      add(add(row, 'dd', grouped(number)), 'small', unit);
    };
    total('Peak memory of any stage', split.peak, 'bytes');
    total('Over all cuts', split.cutBytes, 'bytes');
    if (split.slowest !== null) total('Slowest stage', split.slowest, 'cycles');
  };

  const showBest = () => {
    const row = part('best');
    row.replaceChildren();
    const own = best();
    if (!own) {
      row.textContent = `For ${counted(now.ipus, 'IPU')} no split is known here.`;
      return;
    }
    const isSame = String(known.limitsOf(now)) === String(known.limitsOf({ ...known.start, ipus: now.ipus }));
    const isLowest = report.proof?.objective === 'peak' && known.start.memories.length === 1;
    const tried = { ...now, cuts: known.cutsOf(own.ends) };
    const split = known.computed(tried);
    const fits = !known.faults(tried, split).length;
    row.dataset.fits = String(fits);
    const rank = isLowest || (isSame && !own.fits) ? 'with the lowest peak'
      : isSame ? 'that is the best' : 'that is the best within the limits of the run';
    /** @param {number} number @param {string} pointer */
    const number = (number, pointer) => { add(row, 'span', grouped(number)).dataset.now = pointer; };
    row.append(`The split for at most ${counted(now.ipus, 'IPU')} ${rank} needs `);
    number(split.peak, '/given/best_fullest_tile_bytes');
    row.append(` bytes on its fullest tile and ${fits ? 'fits' : 'does not fit'}; over all cuts `);
    number(split.cutBytes, '/given/best_cut_bytes');
    row.append(' bytes');
    if (split.slowest !== null) {
      row.append('; its slowest stage takes ');
      number(split.slowest, '/given/best_slowest_stage_cycles');
      row.append(' cycles');
    }
    row.append(isSame || isLowest ? '.' : '. Within other limits another may be better: run the command.');
  };

  const show = () => {
    const split = known.computed(now);
    showStrip(split);
    showTable(split);
    showVerdict(split);
    showBest();
    part('command').textContent = commandOf(known, now) || 'not known: the report was made by no command, or a name in it cannot be typed';
    showButtons(split);
    keep();
  };

  /** Keeps what is tried in the address. */
  const keep = () => {
    const { start } = known;
    const isMoved = String(now.cuts) !== String(start.cuts);
    choose({
      cuts: isMoved ? now.cuts.map((cut) => data.boundaries[cut]).join(',') || 'none' : null,
      ipus: now.ipus === start.ipus ? null : now.ipus,
      memory: now.memories === start.memories ? null : now.memories[0],
      reserve: now.reserves === start.reserves ? null : common(now.reserves),
    });
  };

  /** @param {number} cut @param {number} place */
  const move = (cut, place) => {
    const [from, to] = room(cut);
    now.cuts = now.cuts.with(cut, Math.min(Math.max(place, from), to));
    news = '';
    show();
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
      const cuts = [...now.cuts.slice(0, stage), place, ...now.cuts.slice(stage)];
      const { stages } = known.computed({ ...now, cuts });
      return Math.max(stages[stage].bytes, stages[stage + 1].bytes);
    };
    const all = stage >= 0 && hasRoom() ? inside(stage).map((place) => ({ place, peak: peak(place) })) : [];
    if (all.length) addCut(all.reduce((best, own) => own.peak < best.peak ? own : best).place);
  };

  /** @param {number} cut */
  const removeCut = (cut) => {
    news = `Cut removed ${between(now.cuts[cut])}. `;
    rebuild(now.cuts.filter((_, own) => own !== cut));
    chosenCut = now.cuts.length ? Math.min(cut, now.cuts.length - 1) : null;
    showButtons(known.computed(now));
  };

  /** @param {KeyboardEvent} event @param {number} cut */
  const press = (event, cut) => {
    const goal = goalOf(event, now.cuts[cut], 5, ...(/** @type {[number, number]} */ (room(cut))));
    if (!isPlain(event)) return;
    if (event.key === 'Delete' || event.key === 'Backspace') {
      event.preventDefault();
      removeCut(cut);
      (chosenCut === null ? adding : drawn.handles[chosenCut]).focus();
    } else if (goal !== undefined) {
      event.preventDefault();
      move(cut, goal);
    }
  };

  /** Of some boundaries that which is nearest to the pointer.
   * @param {MouseEvent} event @param {number[]} all */
  const nearest = (event, all) => {
    const place = shareOf(strip, event) * positions;
    const far = (/** @type {number} */ own) => Math.abs(data.boundaries[own] - place);
    return all.reduce((near, own) => far(own) < far(near) ? own : near);
  };

  /** @param {?number} cut @param {?number} stage */
  const pick = (cut, stage) => {
    [chosenCut, chosenStage] = [cut, stage];
    if (stage !== null) choose({ ipu: stage });
    showButtons(known.computed(now));
  };

  /** @param {number} cut */
  const handleOf = (cut) => {
    const handle = add(strip, 'div', '', 'handle');
    handle.tabIndex = 0;
    handle.setAttribute('role', 'slider');
    handle.setAttribute('aria-label', `Cut between IPU ${cut} and IPU ${cut + 1}`);
    handle.addEventListener('focus', () => pick(cut, null));
    handle.addEventListener('keydown', (event) => press(event, cut));
    handle.addEventListener('pointerdown', (event) => {
      handle.setPointerCapture(event.pointerId);
      handle.focus();
      event.preventDefault();
    });
    handle.addEventListener('pointermove', (event) => {
      if (handle.hasPointerCapture(event.pointerId)) move(cut, nearest(event, [...data.boundaries.keys()]));
    });
    return handle;
  };

  /** @param {number} stage */
  const stageOf = (stage) => {
    const box = add(strip, 'div', '', 'stage');
    add(add(box, 'div', '', 'level'), 'div', '', 'fill');
    add(box, 'span', '');
    box.tabIndex = 0;
    box.setAttribute('role', 'button');
    box.addEventListener('focus', () => pick(null, stage));
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
    strip.replaceChildren();
    drawn = { stages: [...cuts, last].map((_, stage) => stageOf(stage)), handles: [] };
    drawn.handles = cuts.map((_, cut) => handleOf(cut));
    show();
  };

  /** Shows a known split. @param {number[]} ends */
  const take = (ends) => {
    news = '';
    rebuild(known.cutsOf(ends));
  };

  const reset = () => {
    Object.assign(now, known.start);
    showFields();
    news = '';
    rebuild(now.cuts);
  };

  const showFields = () => {
    const entered = (/** @type {?number} */ number) => number === null ? '' : String(number);
    ipus.value = String(now.ipus);
    memory.value = entered(now.memories.length > 1 ? null : now.memories[0]);
    reserve.value = entered(common(now.reserves));
    reserve.setCustomValidity('');
  };

  /** What was entered; an empty field means what the run had. */
  const readMemory = () => {
    const { start } = known;
    const isOne = memory.value && (start.memories.length > 1 || memory.valueAsNumber !== start.memories[0]);
    const memories = isOne ? [memory.valueAsNumber] : start.memories;
    const own = isOne ? [common(start.reserves) ?? 0] : start.reserves;
    const isOther = reserve.value && String(memories.map(() => reserve.valueAsNumber)) !== String(own);
    const reserves = isOther ? memories.map(() => reserve.valueAsNumber) : own;
    const isEnough = Math.min(...known.limitsOf({ ...now, memories, reserves })) > 0;
    reserve.setCustomValidity(isEnough ? '' : 'This leaves nothing of a tile: keep less free.');
    if (!memory.validity.valid || !reserve.validity.valid) return;
    Object.assign(now, { memories, reserves });
    news = '';
    show();
  };

  /** What the address says is tried. */
  const restore = () => {
    Object.assign(now, known.start);
    if (chosen.ipus && chosen.ipus <= most) now.ipus = chosen.ipus;
    if (chosen.memory) [now.memories, now.reserves] = [[chosen.memory], [common(known.start.reserves) ?? 0]];
    if (chosen.reserve !== null) now.reserves = now.memories.map(() => chosen.reserve ?? 0);
    if (Math.min(...known.limitsOf(now)) <= 0) [now.memories, now.reserves] = [known.start.memories, known.start.reserves];
    const places = chosen.cuts === 'none' ? [] : (chosen.cuts ?? '').split(',').map((own) => data.boundaries.indexOf(Number(own)));
    const isKnown = chosen.cuts !== null && places.every((own, place) => own > (places[place - 1] ?? 0) && own < last)
      && places.length < data.max_stages;
    showFields();
    rebuild(isKnown ? places : known.start.cuts);
  };

  ipus.addEventListener('input', () => {
    if (!ipus.validity.valid || !ipus.value) return;
    now.ipus = ipus.valueAsNumber;
    news = '';
    show();
  });
  memory.addEventListener('input', readMemory);
  reserve.addEventListener('input', readMemory);
  restore();
  onChoice(['ipu'], () => {
    drawn.stages.forEach((box, stage) => box.classList.toggle('is-chosen', chosen.ipu === stage));
    showTable(known.computed(now));
  });
  onChoice(['cuts', 'ipus', 'memory', 'reserve'], () => {
    const own = now.cuts.map((cut) => data.boundaries[cut]).join(',') || 'none';
    const isMoved = String(now.cuts) !== String(known.start.cuts);
    if ((isMoved ? own : null) !== chosen.cuts || (now.ipus === known.start.ipus ? null : now.ipus) !== chosen.ipus) restore();
  });
  onResize(strip, () => showStrip(known.computed(now)));
};

/** The layers below the stages, as high as each has bytes. @param {HTMLElement} parent */
const addLayerColumns = (parent) => {
  const { layers } = report;
  const HEIGHT = 74, BASE = 54;
  const svg = draw(parent, 'svg', { class: 'layer-columns', height: HEIGHT, role: 'img', 'aria-label': 'Bytes of each layer over all tiles' });
  const highest = Math.max(...layers.map((/** @type {any} */ own) => Number(own.total)), 1);
  const show = () => {
    svg.replaceChildren();
    const width = Math.max(svg.clientWidth, 50);
    const each = 100 / layers.length;
    const names = layers.map((/** @type {any} */ own, /** @type {number} */ place) => {
      const height = Number(own.total) / highest * BASE;
      const column = draw(svg, 'rect', {
        class: chosen.layer === place ? 'layer is-chosen' : 'layer', x: `${place * each + each * .08}%`, width: `${each * .84}%`, y: BASE - height, height: Math.max(height, 1),
      });
      column.dataset.tip = `${layerName(own.name)}\n${grouped(own.total)} bytes over all tiles\n${grouped(own.fullest_tile_bytes)} on its fullest, tile ${own.fullest_tile}`;
      column.addEventListener('click', () => choose({ layer: place }));
      return { x: (place + .5) / layers.length * width, text: short(printable(layerName(own.name)), 12) };
    });
    for (const own of apart(names, width)) {
      draw(svg, 'text', { class: 'axis', x: `${own.x / width * 100}%`, y: HEIGHT - 6, 'text-anchor': 'middle' }, own.text);
    }
  };
  show();
  onChoice(['layer'], show);
  onResize(svg, show);
};

/** The stage or IPU that is chosen, alone. @param {HTMLElement} parent */
const addChosenStage = (parent) => {
  const stages = stagesOf();
  if (!stages.length) return;
  const nearest = stages.reduce((/** @type {any} */ a, /** @type {any} */ b) => Number(b.tile.free) < Number(a.tile.free) ? b : a);
  const box = addPart(parent, 'stage', '');
  const show = () => {
    const one = stages.find((/** @type {any} */ own) => own.ipu === chosen.ipu) ?? nearest;
    const { own, tile, ipu, curve } = one;
    box.replaceChildren();
    add(box, 'h2', `IPU ${ipu}`);
    const select = addSelect(add(box, 'div', '', 'controls'), 'Show', 'stage-ipu', stages.map((/** @type {any} */ each) => [String(each.ipu), `IPU ${each.ipu}`]));
    select.value = String(ipu);
    select.addEventListener('change', () => { choose({ ipu: Number(select.value) }); byId('stage-ipu').focus(); });
    const line = add(box, 'p', own.layers ? `Layers ${layerList(own.layers)}. Tile ` : 'Tile ');
    addNumber(line, 'span', tile.tile, `${one.at}/fullest_tile/tile`);
    line.append(' is its fullest, with ');
    addNumber(line, 'span', tile.bytes, `${one.at}/fullest_tile/bytes`);
    line.append(` bytes, ${ofLimit(tile.bytes, tile.limit)} of the limit`);
    if (tile.peak_step !== null) {
      line.append(', at step ');
      addNumber(line, 'span', tile.peak_step, `${one.at}/fullest_tile/peak_step`);
    }
    line.append('. ');
    addButton(line, 'Show this tile in Memory', () => choose({ view: 'memory', tile: tile.tile, ...(tile.peak_step === null ? {} : { step: tile.peak_step }) }));
    addPartsLegend(box, [tile.parts]);
    const parts = partsOf(tile.parts);
    const all = parts.reduce((sum, part) => sum + Number(part.bytes), 0);
    addBar(box, parts, Math.max(all, Number(tile.limit)), Number(tile.limit));
    addTable(box, `What is on tile ${tile.tile}`, columnsOf([['Part', 'text'], ['Bytes', 'bytes', ''], ['Share of all', 'text']]),
      parts.map((part, place) => ({ at: '', cells: [part.name, part.bytes, shares(parts.map((each) => Number(each.bytes)))[place]] })),
      { look: (column, cell) => column.name === 'Part' ? parts.find((part) => part.name === cell)?.look ?? '' : '' });
    if (own.categories) addFolded(box, 'All its categories', (inner) => addTableAt(inner, `Categories of IPU ${ipu}`, `${one.at}/categories`,
      [['Category', 'text', '/name'], ['All tiles', 'bytes', '/all_tiles'], ['Fullest tile', 'bytes', '/fullest_tile']],
      { look: (column, cell) => column.name === 'Category' ? lookOf(cell) : '' }, (each) => Number(each.all_tiles) > 0));
    addHistogram(box, own.tiles, `${one.at}/tiles`, Number(tile.limit));
    const bands = own.layers ? layerBands((band) => own.layers.includes(band.layer)) : [];
    if (own.fullest_tile_curve || own.curve) {
      add(box, 'h3', own.fullest_tile_curve ? `Tile ${tile.tile} over the steps` : 'All its tiles over the steps');
      addCurve(box, 'stage-curve', `Bytes of IPU ${ipu} over the steps`, curve,
        `${one.at}/${own.fullest_tile_curve ? 'fullest_tile_curve' : 'curve'}`, own.fullest_tile_curve ? tile.limit : undefined, bands);
    }
    if (own.all_tiles_curve) addFolded(box, 'All its tiles together over the steps', (inner) => addCurve(inner, 'stage-all',
      `Bytes of all tiles of IPU ${ipu} over the steps`, own.all_tiles_curve, `${one.at}/all_tiles_curve`, undefined, bands));
    addPeakVariables(box, own.peak_variables, `${one.at}/peak_variables`);
    const { pipeline } = own;
    if (pipeline?.copies) {
      add(box, 'p', `With ${counted(pipeline.depth, 'pipeline stage')} after it, it keeps ${grouped(pipeline.copies)} more ${pipeline.copies === 1 ? 'copy' : 'copies'} of what it stashes.`);
      addTableAt(box, 'Largest stashed variables', `${one.at}/pipeline/stashed`, [['Variable', 'name', '/name'], ['Bytes of one copy', 'bytes', '/bytes'], ['Layers', 'layers', '/layers']]);
    }
  };
  show();
  onChoice(['ipu'], show);
};

/** How many tiles are how full. @param {Element} parent @param {any} tiles @param {string} pointer
 * @param {number} limit */
const addHistogram = (parent, tiles, pointer, limit) => {
  if (!tiles?.histogram?.length) return;
  const buckets = tiles.histogram;
  const most = Math.max(...buckets.map((/** @type {any} */ own) => own.tiles), 1);
  add(parent, 'h3', 'Tiles by how full they are');
  const svg = draw(parent, 'svg', { class: 'histogram', height: 96, role: 'img', 'aria-label': 'Number of tiles by their bytes' });
  buckets.forEach((/** @type {any} */ own, /** @type {number} */ place) => {
    const each = 100 / buckets.length;
    const height = own.tiles / most * 74;
    const column = draw(svg, 'rect', { class: own.from > limit ? 'over' : 'tile-0', x: `${(place + .06) * each}%`, width: `${each * .88}%`, y: 74 - height, height: Math.max(height, own.tiles ? 1.5 : 0) });
    column.dataset.tip = `${counted(own.tiles, 'tile')}\nwith ${grouped(own.from)} to ${grouped(own.to)} bytes`;
    if (place % 5 === 0 && own.from <= limit) draw(svg, 'text', { class: 'axis', x: `${place * each}%`, y: 92 }, `${place * 5} %`);
  });
  const caption = add(parent, 'p', 'Half of the tiles have at most ', 'soft');
  addNumber(caption, 'span', tiles.median, `${pointer}/median`);
  caption.append(' bytes, 95 % at most ');
  addNumber(caption, 'span', tiles.percentile_95, `${pointer}/percentile_95`);
  caption.append('. Columns are parts of the limit.');
  addFolded(parent, 'Table of the tiles', (inner) => addTableAt(inner, 'Tiles by their bytes', `${pointer}/histogram`,
    [['From', 'bytes', '/from'], ['To', 'bytes', '/to'], ['Tiles', 'count', '/tiles']], {}, (own) => own.tiles > 0));
};

/** The largest variables at a peak. @param {Element} parent @param {any} live @param {string} pointer */
const addPeakVariables = (parent, live, pointer) => {
  if (!live) return;
  add(parent, 'h3', 'Variables that are live at the peak');
  const line = add(parent, 'p', 'On tile ', 'soft');
  addNumber(line, 'span', live.tile, `${pointer}/tile`);
  line.append(' at step ');
  addNumber(line, 'span', live.step, `${pointer}/step`);
  line.append(' ');
  addNumber(line, 'span', live.count, `${pointer}/count`);
  line.append(' variables are live with ');
  addNumber(line, 'span', live.bytes, `${pointer}/bytes`);
  line.append(' bytes.');
  addTableAt(parent, 'Largest live variables', `${pointer}/largest`,
    [['Variable', 'name', '/name'], ['Category', 'text', '/category'], ['Layers', 'layers', '/layers'], ['Bytes', 'bytes', '/bytes']],
    { most: 10, choose: (row) => choose({ variable: row.cells[0], view: 'memory' }), look: (column, cell) => column.name === 'Category' ? lookOf(cell) : '' });
  if (live.categories?.length) addFolded(parent, 'By category', (inner) => addTableAt(inner, 'Live bytes by category', `${pointer}/categories`,
    [['Category', 'text', '/name'], ['Bytes', 'bytes', '/bytes']], { look: (column, cell) => column.name === 'Category' ? lookOf(cell) : '' }));
};

/** The whole view. @param {HTMLElement} parent */
const buildSplit = (parent) => {
  const tried = addPart(parent, 'what-if', 'Split');
  if (report.refusal) {
    addSentences(tried, 'refusal', 'said bad-list');
  }
  addTriedSplit(tried);
  addChosenStage(parent);
  const stages = addPart(parent, 'stages', 'Stages as they were searched');
  addSentences(stages, 'pipeline');
  addSentences(stages, 'learnt');
  addTablesOf(stages, 'split', undefined, { choose: (_, ipu) => choose({ ipu }) });
  if (report.given) {
    const given = addPart(parent, 'given', 'Beside the best');
    addSentences(given, 'given');
  }
  if (report.cuts?.length) {
    const cuts = addPart(parent, 'cuts', 'Cuts');
    add(cuts, 'p', 'Bytes of the distinct variables that flow over each cut, in either direction. What is always live and used on both sides is doubled: each side needs a copy.');
    addTablesOf(cuts, 'cuts');
    const columns = columnsOf([['Cut', 'text'], ['Layers', 'layers', '/layers'], ['To IPU', 'count', '/to_stage'], ['Peak before the cut', 'bytes', '/fullest_tile_bytes/0'],
      ['Change', 'change', '/change/0'], ['Peak after it', 'bytes', '/fullest_tile_bytes/1'], ['Change after it', 'change', '/change/1']]);
    const moves = report.cuts.flatMap((/** @type {any} */ own, /** @type {number} */ place) => rowsAt(`/cuts/${place}/moves`, columns)
      .map((row) => ({ at: row.at, cells: [`IPU ${own.after_stage} to ${own.after_stage + 1}`, ...row.cells.slice(1)] })));
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
    const tied = addPart(parent, 'tied-weights', 'Tied weights');
    add(tied, 'p', 'Weights that several layers use. Frameworks put a weight on one IPU, so these layers and all between them are in one stage.');
    addSentences(tied, 'tied-weights');
  }
  if (report.shared_variables?.length) {
    const shared = addPart(parent, 'shared-variables', 'Shared variables');
    add(shared, 'p', 'Layers that use the same variables that are always live, such as constants. A cut between them doubles the bytes.');
    addTableAt(shared, 'Shared variables', '/shared_variables', [['Layers', 'layers', '/layers'], ['Bytes', 'bytes', '/bytes']], { most: 20 });
  }
};

/** The IPUs of a compilation. @param {HTMLElement} parent */
const buildIpus = (parent) => {
  const ipus = addPart(parent, 'ipus', 'IPUs');
  addSentences(ipus, 'verdict');
  const all = stagesOf();
  addPartsLegend(ipus, all.map((/** @type {any} */ own) => own.tile.parts));
  const bars = add(ipus, 'div', '', 'bars');
  const most = Math.max(...all.map((/** @type {any} */ own) => Math.max(Number(own.tile.bytes), Number(own.tile.limit))));
  for (const own of all) {
    addButton(add(bars, 'div', '', 'label'), `IPU ${own.ipu}`, () => choose({ ipu: own.ipu })).className = 'link';
    addBar(bars, partsOf(own.tile.parts), most, Number(own.tile.limit));
    add(bars, 'div', ofLimit(own.tile.bytes, own.tile.limit), own.tile.free < 0 ? 'value bad' : 'value');
  }
  addTablesOf(ipus, 'ipus', undefined, { most: 16 });
  addChosenStage(parent);
  if (report.fit.against) {
    const against = addPart(parent, 'against', 'Against the prediction');
    addSentences(against, 'differences');
    addTablesOf(against, 'against');
    addTablesOf(against, 'parts');
  }
};
