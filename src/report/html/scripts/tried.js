// The split, whose cuts the reader can move. The moved cuts are part of the choice, so links and the
// other views have them.

/** @param {HTMLElement} parent */
const addTriedSplit = (parent) => {
  if (!known) {
    return void addAs(parent, 'p', 'what-if-without', 'You cannot move cuts here: the report has no numbers of other splits, or they are too large. '
      + '--splits judges any split.', 'soft');
  }
  const own = known;
  const tool = addAs(parent, 'div', 'what-if-tool');
  addTriedFields(tool, own);
  addTriedStrip(tool, own);
  if (own.data.boundaries.length <= own.positions) {
    add(tool, 'p', 'The model has too many ranges of layers: you can move cuts only near the cuts of this split and of the best splits.', 'soft').id = 'what-if-some';
  }
  addTriedVerdict(tool, own);
  addTriedStages(tool, own);
  addTriedBest(tool, own);
  const { code } = addCommandLine(tool, 'what-if-command', 'what-if-copy');
  follow(TRIED, () => {
    code.textContent = commandOf(own) || 'none: the report does not come from a command, or one of its names cannot be typed';
  });
};

/** Adds the fields for the number of IPUs, the memory of a tile, and the reserve. @param {HTMLElement} tool @param {Known} own */
const addTriedFields = (tool, own) => {
  const controls = add(tool, 'div', '', 'controls');
  const ipus = addField(controls, 'IPUs', 'number', 'what-if-ipus', () => {
    if (ipus.validity.valid && ipus.value) own.choose({ ipus: ipus.valueAsNumber });
  }, { min: 1, max: own.mostIpus, step: 1 });

  /** Reads the fields of memory and reserve; an empty field stands for the value of the run. */
  const readMemory = () => {
    const { start } = own;
    const isOne = memory.value && (start.memories.length > 1 || memory.valueAsNumber !== start.memories[0]);
    const memories = isOne ? [memory.valueAsNumber] : start.memories;
    const before = isOne ? [common(start.reserves) ?? 0] : start.reserves;
    const isOther = reserve.value && String(memories.map(() => reserve.valueAsNumber)) !== String(before);
    const reserves = isOther ? memories.map(() => reserve.valueAsNumber) : before;
    const isEnough = Math.min(...own.limitsOf({ ...own.wanted(), memories, reserves })) > 0;
    reserve.setCustomValidity(isEnough ? '' : 'This leaves nothing of a tile: keep less free.');
    if (memory.validity.valid && reserve.validity.valid) own.choose({ memories, reserves });
  };
  const memory = addField(controls, 'Memory of a tile in bytes', 'number', 'what-if-memory', readMemory, { min: 1, max: 2 ** 40, step: 1 });
  const reserve = addField(controls, 'Reserve in bytes', 'number', 'what-if-reserve', readMemory, { min: 0, max: 2 ** 40, step: 1 });
  follow(['ipus', 'memory', 'reserve'], () => {
    const now = own.wanted();
    if (document.activeElement !== ipus) ipus.value = String(now.ipus);
    if (document.activeElement === memory || document.activeElement === reserve) return;
    memory.value = now.memories.length > 1 ? '' : String(now.memories[0]);
    reserve.value = String(common(now.reserves) ?? '');
    reserve.setCustomValidity('');
  });
};

/** Draws the stages side by side, with handles at the cuts. @param {HTMLElement} tool @param {Known} own */
const addTriedStrip = (tool, own) => {
  const { data, last, positions } = own;
  const strip = set(addAs(tool, 'div', 'what-if-strip', '', 'strip'), { role: 'group', 'aria-label': 'Stages, and the cuts between them' });
  addLayerColumns(tool);
  const buttons = add(tool, 'div', '', 'controls');
  const adding = addButton(buttons, 'Add a cut', () => halve(stageToCut()), 'what-if-add');
  const removing = addButton(buttons, 'Remove this cut', () => {
    if (picked.cut !== undefined) removeCut(picked.cut);
    // A disabled button would lose the focus.
    if (picked.cut === undefined) adding.focus();
  }, 'what-if-remove');
  const taking = addButton(buttons, 'Show the best for this number of IPUs', () => own.choose({ cuts: own.cutsOf(own.best()?.cuts ?? []) }), 'what-if-take');
  addButton(buttons, 'Reset', () => own.choose(own.start), 'what-if-reset');
  const most = addAs(buttons, 'span', 'what-if-most', '', 'soft');
  add(tool, 'p', 'Drag a cut, or focus it and press the arrow keys, Page Up, Page Down, Home or End; Delete removes it. '
    + 'Double-click a stage, or focus it and press Enter, to cut it in two. Each stage shows how full its fullest tile is.', 'soft hint');

  /** @type {HTMLElement[]} */
  let boxes = [];
  /** @type {HTMLElement[]} */
  let handles = [];
  /** The cut or stage of the strip that had the focus last. @type {{cut?: number, stage?: number}} */
  let picked = {};

  /** The lowest and the highest boundary to which a cut can be moved. @param {number} cut @returns {[number, number]} */
  const room = (cut) => {
    const { cuts } = own.wanted();
    return [(cuts[cut - 1] ?? 0) + 1, (cuts[cut + 1] ?? last) - 1];
  };
  /** Names a boundary by the layer after it. @param {number} place */
  const before = (place) => `before ${short(layerName(report.layers[data.boundaries[place]].name), 60)}`;
  /** The boundaries inside a stage, at which it can be cut. @param {number} stage */
  const inside = (stage) => {
    const { cuts } = own.wanted();
    return [...data.boundaries.keys()].slice((cuts[stage - 1] ?? 0) + 1, cuts[stage] ?? last);
  };
  /** Does the report have the bytes of splits with one stage more than the tried split? */
  const hasRoom = () => own.wanted().cuts.length + 1 < data.max_stages;

  /** The stage that the button cuts in two: the chosen one, or the fullest one that can be cut; -1 if none can. */
  const stageToCut = () => {
    if (!hasRoom()) return -1;
    if (picked.stage !== undefined && inside(picked.stage).length) return picked.stage;
    const fill = own.tried().stages.map((one, stage) => inside(stage).length ? one.bytes / one.limit : -1);
    const highest = Math.max(...fill);
    return highest < 0 ? -1 : fill.indexOf(highest);
  };

  const showButtons = () => {
    adding.disabled = stageToCut() < 0;
    const { cut: gone } = picked;
    removing.disabled = gone === undefined;
    removing.textContent = gone === undefined ? 'Remove this cut' : `Remove the cut between IPU ${gone} and IPU ${gone + 1}`;
    taking.disabled = !own.best();
    most.textContent = hasRoom() ? '' : `The report has no splits of more than ${data.max_stages} stages.`;
    handles.forEach((handle, cut) => handle.classList.toggle('is-chosen', cut === picked.cut));
    boxes.forEach((box, stage) => box.classList.toggle('is-chosen', chosen.ipu === stage));
  };

  const showStages = () => {
    const { cuts, stages } = own.tried();
    boxes.forEach((box, stage) => {
      fillStageBox(box, stages[stage], stage);
      set(box, { 'aria-label': printable(`${box.dataset.tip?.replaceAll('\n', ', ')}; cut it in two`) });
    });
    handles.forEach((handle, cut) => {
      const [from, to, own] = [...room(cut), cuts[cut]].map((place) => data.boundaries[place]);
      handle.style.left = `${own / positions * 100}%`;
      set(handle, { 'aria-valuemin': from, 'aria-valuemax': to, 'aria-valuenow': own, 'aria-valuetext': printable(before(cuts[cut])) });
    });
  };

  /** @param {number} cut @param {number} place */
  const move = (cut, place) => {
    const [from, to] = room(cut);
    own.choose({ cuts: own.wanted().cuts.with(cut, Math.min(Math.max(place, from), to)) });
  };

  /** @param {number} place */
  const addCut = (place) => {
    if (!hasRoom()) return;
    const cuts = [...own.wanted().cuts, place].sort((a, b) => a - b);
    own.choose({ cuts }, `Cut added ${before(place)}. `);
    handles[cuts.indexOf(place)].focus();
  };

  /** Cuts a stage in two, where the fuller half has the fewest bytes. @param {number} stage */
  const halve = (stage) => {
    const now = own.wanted();
    const peak = (/** @type {number} */ place) => {
      const { stages } = own.judged({ ...now, cuts: now.cuts.toSpliced(stage, 0, place) });
      return Math.max(stages[stage].bytes, stages[stage + 1].bytes);
    };
    const all = stage >= 0 && hasRoom() ? inside(stage).map((place) => ({ place, peak: peak(place) })) : [];
    if (all.length) addCut(all.reduce((best, one) => one.peak < best.peak ? one : best).place);
  };

  /** @param {number} cut */
  const removeCut = (cut) => {
    const { cuts } = own.wanted();
    own.choose({ cuts: cuts.toSpliced(cut, 1) }, `Cut removed ${before(cuts[cut])}. `);
    pick(handles.length ? { cut: Math.min(cut, handles.length - 1) } : {});
  };

  /** The boundary that is nearest to the pointer. @param {MouseEvent} event @param {number[]} all */
  const nearest = (event, all) => {
    const place = sharesOf(strip, event)[0] * positions;
    const far = (/** @type {number} */ one) => Math.abs(data.boundaries[one] - place);
    return all.reduce((near, one) => far(one) < far(near) ? one : near);
  };

  /** @param {typeof picked} next */
  const pick = (next) => {
    picked = next;
    if (next.stage !== undefined) choose({ ipu: next.stage });
    showButtons();
  };

  /** @param {number} cut */
  const handleOf = (cut) => {
    const name = `Cut between IPU ${cut} and IPU ${cut + 1}`;
    const handle = set(add(strip, 'div', '', 'handle'), { tabindex: 0, role: 'slider', 'aria-label': name });
    handle.addEventListener('focus', () => pick({ cut }));
    handle.addEventListener('keydown', (event) => {
      const goal = goalOf(event, own.wanted().cuts[cut], 5, ...room(cut));
      if (!isPlain(event)) return;
      if (event.key === 'Delete' || event.key === 'Backspace') {
        removeCut(cut);
        (handles[picked.cut ?? -1] ?? adding).focus();
      } else if (goal !== undefined) move(cut, goal);
      else return;
      event.preventDefault();
    });
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
    const box = set(addStageBox(strip), { tabindex: 0, role: 'button' });
    box.addEventListener('focus', () => pick({ stage }));
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

  follow(TRIED, () => {
    const { cuts } = own.wanted();
    if (boxes.length !== cuts.length + 1) {
      picked = {};
      strip.replaceChildren();
      boxes = [...cuts, last].map((_, stage) => stageOf(stage));
      handles = cuts.map((_, cut) => handleOf(cut));
    }
    showStages();
  });
  follow([...TRIED, 'ipu'], showButtons);
  onResize(strip, showStages);
};

/** @param {HTMLElement} tool @param {Known} own */
const addTriedVerdict = (tool, own) => {
  const verdict = set(addAs(tool, 'p', 'what-if-verdict'), { role: 'status' });
  const totals = addAs(tool, 'dl', 'what-if-totals', '', 'figures');
  follow(TRIED, () => {
    const split = own.tried();
    const { faults } = split;
    verdict.className = faults.length ? 'bad' : 'good';
    verdict.dataset.fits = String(!faults.length);
    verdict.textContent = printable(own.news() + (faults.length ? `This split does not fit: ${faults.join('; ')}.` : 'This split fits.'));
    totals.replaceChildren();
    addFigure(totals, 'Peak memory of any stage', [grouped(split.peak)], ['bytes']);
    addFigure(totals, 'Over all cuts', [grouped(split.cutBytes)], ['bytes']);
    if (split.slowest !== null) addFigure(totals, 'Slowest stage', [grouped(split.slowest)], ['cycles']);
    addStepFigure(totals, split);
  });
};

/** Shows the time of a step of a split, if it is known. @param {HTMLElement} figures @param {Judged} split */
const addStepFigure = (figures, split) => {
  const cycles = known?.stepOf(split.stages) ?? null;
  if (cycles === null) return;
  const clock = report.provenance.target.clock_hz;
  const figure = addFigure(figures, 'A step', [clock && `${digits(cycles / clock * 1000)} ms`]);
  write(add(figure, 'small'), [[cycles, '/step/cycles'], ' cycles'], 'now');
};

/** @param {HTMLElement} tool @param {Known} own */
const addTriedStages = (tool, own) => {
  const tile = '/split/stages/{}/fullest_tile';
  const [{ cycles }, ...others] = own.data.profiles;
  const clock = report.provenance.target.clock_hz;
  const columns = columnsOf([
    ['IPU', 'text'], ['Layers', 'layers'], ['Peak memory', 'bytes', `${tile}/bytes`], ['Limit', 'bytes', `${tile}/limit`],
    ['Of the limit', 'share'], !!others.length && ['AMP', 'text'], ['Free', 'free', `${tile}/free`],
    cycles && ['Cycles of a micro-batch', 'count', '/execution/stages/{}/micro_batch_cycles'],
    cycles && !!clock && ['Micro-batch (ms)', 'text'],
    ['Bytes over the cut after it', 'bytes', '/cuts/{}/bytes'],
  ]);
  const table = addTable(addAs(tool, 'div', 'what-if-table'), 'Stages of the split', columns, [], {
    id: 'what-if-stages', isTried: true, choose: (_, ipu) => choose({ ipu }), isChosen: (_, ipu) => ipu === chosen.ipu,
  });
  follow(TRIED, () => {
    table.set(own.tried().stages.map(({ range, bytes, limit, amp, cycles: time, cutBytes }, stage) => ({
      at: String(stage),
      cells: [`IPU ${stage}`, layersAt(range), bytes, limit, [bytes, limit], ...(others.length ? [String(amp)] : []), limit - bytes,
        ...(time === null ? [] : clock ? [time, (time / clock * 1000).toFixed(3)] : [time]), cutBytes],
    })));
  });
};

/** Says how much memory the best split for the number of IPUs needs. @param {HTMLElement} tool @param {Known} own */
const addTriedBest = (tool, own) => {
  const row = addAs(tool, 'p', 'what-if-best', '', 'soft');
  follow(TRIED, () => {
    const now = own.wanted();
    const best = own.best();
    row.textContent = best ? '' : `The report has no split for ${counted(now.ipus, 'IPU')}.`;
    if (!best) return;
    const isSame = String(own.limitsOf(now)) === String(own.limitsOf({ ...own.start, ipus: now.ipus }));
    const isLowest = report.proof?.objective === 'peak' && own.start.memories.length === 1;
    const { peak, cutBytes, slowest, faults } = own.judged({ ...now, cuts: own.cutsOf(best.cuts) });
    const fits = !faults.length;
    row.dataset.fits = String(fits);
    const rank = isLowest || (isSame && !best.fits) ? 'with the lowest peak'
      : isSame ? 'that is the best' : 'that is the best within the limits of the run';
    write(row, [`Of these layers, the split for at most ${counted(now.ipus, 'IPU')} ${rank} needs `, [peak, '/given/best/fullest_tile_bytes'],
      ` bytes on its fullest tile and ${fits ? 'fits' : 'does not fit'}; over all cuts `, [cutBytes, '/given/best/cut_bytes'], ' bytes',
      slowest !== null && '; its slowest stage takes ', slowest !== null && [slowest, '/given/best/slowest_stage_cycles'], slowest !== null && ' cycles',
      isSame || isLowest ? '.' : '. With other limits another split may be better: run the command.'], 'now');
  });
};

/** Draws the layers below the stages; the height of each stands for its bytes. @param {HTMLElement} parent */
const addLayerColumns = (parent) => {
  const { layers } = report;
  const HEIGHT = 74, BASE = 54;
  const svg = draw(parent, 'svg', { class: 'layer-columns', height: HEIGHT, role: 'img', 'aria-label': 'Bytes of each layer over all tiles' });
  addLegend(parent, [['always', 'Bytes of each layer, over all tiles']]);
  const highest = Math.max(...layers.map((own) => own.total), 1);
  const show = () => {
    svg.replaceChildren();
    const each = 100 / layers.length;
    layers.forEach((own, place) => {
      const height = Math.max(own.total / highest * BASE, 1);
      draw(svg, 'rect', {
        class: chosen.layer === place ? 'layer is-chosen' : 'layer', x: `${(place + .08) * each}%`, width: `${each * .84}%`,
        y: BASE - height, height, 'data-tip': printable(saidOfLayer(own)),
      }).addEventListener('click', () => choose({ layer: place }));
    });
    const width = Math.max(svg.clientWidth, 50);
    const names = layers.map(({ name }, place) => ({ x: (place + .5) / layers.length * width, text: short(printable(layerName(name)), 12) }));
    drawLabels(svg, names, width, HEIGHT - 6);
  };
  follow(['layer'], show);
  onResize(svg, show);
};
