// What is live step by step: the chart over the steps, which can be zoomed, and the
// variables at the step that the reader chose.
(() => {
  /**
   * @typedef {{fixed: number, always_live: number, at: string, bytes: string}} Line
   * @typedef {[string, ?number, number, number[], boolean, [number, number][]]} Variable
   *   name, category, bytes, layers, always live?, from which to which chosen step
   * @typedef {object} Data
   * @property {number} first step of the program, and the last one
   * @property {number} last
   * @property {?number} turn the first step of the backward pass
   * @property {number} limit bytes of a tile
   * @property {Line} on_tile
   * @property {Line} all_tiles
   * @property {string} steps the chosen ones; all lists by step are packed
   * @property {string[]} texts
   * @property {number[]} programs by step, as places in `texts`
   * @property {(?number)[]} operations the same
   * @property {string} counts
   * @property {string} bytes
   * @property {string} not_always_live over all tiles
   * @property {[string, string][]} categories name, and bytes by step
   * @property {[string, string][]} layers
   * @property {string} in_every_stage
   * @property {Variable[]} variables largest first
   */
  /** @type {?Data} */
  const data = dataOf('live-steps-data');
  if (!data) return;
  /** @type {[string, number, number][]} */
  const bands = dataOf('charts').bands;
  const LARGEST = 20;
  const HEIGHT = 260, ABOVE = 20, BELOW = 20, ROOM = HEIGHT - ABOVE - BELOW;

  /** @param {string} name */
  const part = (name) => byId('live-steps-' + name);
  const chart = part('chart');
  const [layer, name, changing, from, to] = ['layer', 'name', 'changing', 'from', 'to']
    .map((id) => /** @type {HTMLInputElement} */ (part(id)));

  const steps = unpacked(data.steps);
  const counts = unpacked(data.counts);
  const bytes = unpacked(data.bytes);
  const moving = unpacked(data.not_always_live);
  const curve = { at: unpacked(data.on_tile.at), bytes: unpacked(data.on_tile.bytes) };
  const below = data.on_tile.fixed + data.on_tile.always_live;
  const highest = Math.max(below + Math.max(0, ...curve.bytes), data.limit, 1) * 1.1;
  /** @param {[string, string][]} lists */
  const named = (lists) => lists.map(([name, list]) => ({ name, bytes: unpacked(list) }));
  const categories = named(data.categories);
  const layers = named(data.layers);
  const everywhere = unpacked(data.in_every_stage);

  /** Which step is shown, as a place in `steps`; is it held; which steps are drawn. */
  const now = { place: 0, isHeld: false, from: data.first, to: data.last };
  const middle = () => (steps[now.place] - now.from + 0.5) / (now.to - now.from + 1);

  /** Is a variable live at the chosen step? @param {Variable} variable @param {number} place */
  const isLive = (variable, place) =>
    variable[5].some(([from, to]) => from <= place && place <= to);

  /** What the filter leaves of a variable. @param {Variable} variable */
  const isWanted = ([text, , , places, isAlways]) => {
    if (changing.checked && isAlways) return false;
    if (!text.toLowerCase().includes(name.value.trim().toLowerCase())) return false;
    if (layer.value === '') return true;
    return layer.value === 'every' ? !places.length : places.includes(Number(layer.value));
  };

  /** Do the sums of a layer, or of all, tell what the filter leaves? */
  const isExact = () => !name.value.trim() && !changing.checked;
  const isFiltered = () => layer.value !== '' || !isExact();

  /** By chosen step, the bytes that the filter leaves; nothing where it leaves all. */
  const chosenBytes = () => {
    if (!isFiltered()) return null;
    if (isExact()) return layer.value === 'every' ? everywhere : layers[Number(layer.value)].bytes;
    const sums = steps.map(() => 0);
    for (const variable of data.variables.filter(isWanted)) {
      for (const [from, to] of variable[5]) {
        for (let place = from; place <= to; place++) sums[place] += variable[2];
      }
    }
    return sums;
  };

  /** The pixel from the top. @param {number} own bytes */
  const y = (own) => ABOVE + ROOM * (1 - Math.min(own / highest, 1));
  /** Where a step begins, from the left. @param {number} step */
  const x = (step) => {
    const share = (step - now.from) / (now.to - now.from + 1);
    return `${Math.min(Math.max(share, 0), 1) * 100}%`;
  };

  /** The outline over steps, as far as it is drawn, above what is drawn below it.
   * @param {number[]} at @param {number[]} own bytes from there on @param {number} under */
  const outline = (at, own, under) => {
    /** @param {number} bytes */
    const high = (bytes) => Math.round(1000 * (1 - (under + bytes) / highest));
    const first = placeOf(at, now.from);
    let path = `M0 ${high(0)}V${high(own[first])}`;
    for (let place = first + 1; place < at.length && at[place] <= now.to; place++) {
      path += `H${at[place] - now.from}V${high(own[place])}`;
    }
    return path + `H${now.to - now.from + 1}V${high(0)}Z`;
  };

  const drawBands = () => {
    const count = now.to - now.from + 1;
    // Asked for once: after something was drawn it takes time.
    const { width: all } = chart.getBoundingClientRect();
    bands.forEach(([text, first, last], number) => {
      if (last < now.from || first > now.to) return;
      const [start, end] = [Math.max(first, now.from), Math.min(last, now.to) + 1];
      const look = number % 2 ? 'band other' : 'band';
      const width = `${((end - start) / count) * 100}%`;
      draw(chart, 'rect', { class: look, x: x(start), width, y: ABOVE, height: ROOM });
      const room = ((end - start) / count) * all;
      if (text.length * 7.5 < room) {
        draw(chart, 'text', { class: 'axis', x: x(start), y: ABOVE - 5, dx: 1 }, text);
      }
    });
  };

  const drawChart = () => {
    chart.replaceChildren();
    drawBands();
    drawScale(chart, part('scale'), ticks(highest), y);
    const base = HEIGHT - BELOW;
    const [fixed, always] = [y(data.on_tile.fixed), y(below)];
    draw(chart, 'rect', { class: 'overhead', width: '100%', y: fixed, height: base - fixed });
    draw(chart, 'rect', { class: 'always', width: '100%', y: always, height: fixed - always });
    const inner = draw(chart, 'svg', {
      y: ABOVE, width: '100%', height: ROOM, preserveAspectRatio: 'none',
      viewBox: `0 0 ${now.to - now.from + 1} 1000`,
    });
    draw(inner, 'path', { class: 'curve', d: outline(curve.at, curve.bytes, below) });
    const chosen = chosenBytes();
    if (chosen) draw(inner, 'path', { class: 'chosen', d: outline(steps, chosen, 0) });
    draw(chart, 'line', { class: 'limit', x1: 0, x2: '100%', y1: y(data.limit), y2: y(data.limit) });
    draw(chart, 'text', { class: 'limit-text halo', x: 2, y: y(data.limit) - 5 }, 'limit');
    if (data.turn !== null && now.from < data.turn && data.turn <= now.to) {
      const at = x(data.turn);
      draw(chart, 'line', { class: 'mark', x1: at, x2: at, y1: ABOVE, y2: base });
      draw(chart, 'text', { class: 'axis halo', x: at, y: ABOVE + 12, dx: 4 }, 'backward pass');
    }
    draw(chart, 'text', { class: 'axis', x: 0, y: HEIGHT - 5 }, `step ${grouped(now.from)}`);
    draw(chart, 'text', { class: 'axis', x: '100%', y: HEIGHT - 5, 'text-anchor': 'end' }, grouped(now.to));
    draw(chart, 'line', { class: 'cursor shown', id: 'live-steps-cursor', y1: ABOVE, y2: base });
    showCursor();
  };

  const showCursor = () => {
    const at = `${middle() * 100}%`;
    const line = byId('live-steps-cursor');
    line.setAttribute('x1', at);
    line.setAttribute('x2', at);
    line.classList.toggle('held', now.isHeld);
  };

  /** @param {Variable} variable */
  const spans = (variable) => {
    if (variable[4]) return 'always';
    const all = variable[5].map(([from, to]) => from === to
      ? grouped(steps[from]) : `${grouped(steps[from])} to ${grouped(steps[to])}`);
    return all.length > 3 ? `${all.slice(0, 3).join(', ')} \u2026` : all.join(', ');
  };

  /** A row of a table. @param {Element} body @param {string} name
   * @param {string[]} numbers @param {string[]} [texts] */
  const addRow = (body, name, numbers, texts) => {
    const row = add(body, 'tr', '');
    add(row, 'td', name, 'name wrap');
    for (const number of numbers) add(row, 'td', number, 'n');
    for (const text of texts ?? []) add(row, 'td', text, 'name');
  };

  const showVariables = () => {
    const body = part('variables');
    body.replaceChildren();
    const live = data.variables.filter((own) => isLive(own, now.place));
    const wanted = live.filter(isWanted);
    const listed = wanted.slice(0, LARGEST);
    for (const own of listed) {
      const category = own[1] === null ? '' : categories[own[1]].name;
      const names = own[3].map((place) => layers[place].name);
      const shown = names.length > 6 ? `${names.slice(0, 5).join(' ')} \u2026` : names.join(' ');
      addRow(body, own[0], [grouped(own[2])], [category, shown || 'every stage', spans(own)]);
    }
    const sum = listed.reduce((all, own) => all + own[2], 0);
    const count = counts[now.place];
    part('others').textContent = isFiltered()
      ? `${listed.length} of those that the page knows: of each step the ${LARGEST} largest, and the largest of each layer.`
      : `${grouped(count - listed.length)} others with ${grouped(bytes[now.place] - sum)} bytes.`;
  };

  /** @param {string} id @param {{name: string, bytes: number[]}[]} lists */
  const showSums = (id, lists) => {
    const body = part(id);
    body.replaceChildren();
    const whole = bytes[now.place];
    const sums = lists.map((own) => ({ name: own.name, bytes: own.bytes[now.place] }));
    const live = sums.filter((own) => own.bytes > 0).sort((a, b) => b.bytes - a.bytes);
    for (const own of live.slice(0, LARGEST)) {
      const share = whole ? `${((own.bytes / whole) * 100).toFixed(1)} %` : '';
      addRow(body, own.name, [grouped(own.bytes), share]);
    }
    if (live.length > LARGEST) addRow(body, `and ${live.length - LARGEST} others`, ['', '']);
  };

  const showTotals = () => {
    const totals = part('totals');
    totals.replaceChildren();
    /** @param {string} name @param {number} number @param {string} unit @param {string} id */
    const total = (name, number, unit, id) => {
      const row = add(totals, 'div', '');
      add(row, 'dt', name);
      const own = add(row, 'dd', grouped(number));
      own.dataset.step = id;
      add(own, 'small', unit);
    };
    const place = placeOf(curve.at, steps[now.place]);
    total('In use on the tile', below + curve.bytes[place], 'bytes, as the curve has it', 'on_tile');
    total('Variables live there', counts[now.place], `with ${grouped(bytes[now.place])} bytes`, 'count');
    total('Not always live, all tiles', moving[now.place], 'bytes', 'not_always_live');
    const all = data.all_tiles.fixed + data.all_tiles.always_live + moving[now.place];
    total('In use on all tiles', all, 'bytes', 'all_tiles');
  };

  /** What the chosen step is, in a sentence. */
  const described = () => {
    const step = steps[now.place];
    const own = bands.filter(([, first, last]) => first <= step && step <= last);
    const of = own.length ? `, layer ${own.map(([text]) => text).join(' ')}` : '';
    return `Step ${grouped(step)}${of}${now.isHeld ? ', held' : ''}`;
  };

  const showStep = () => {
    const operation = data.operations[now.place];
    part('said').textContent = described();
    const program = data.texts[data.programs[now.place]];
    part('runs').textContent = `Runs ${program || 'nothing that is known'}`
      + (operation === null ? '.' : `, of ${data.texts[operation]}.`);
    chart.setAttribute('aria-valuenow', String(steps[now.place]));
    chart.setAttribute('aria-valuetext', described());
    showTotals();
    showVariables();
    showSums('categories', categories);
    showSums('layers', [...layers, { name: 'in every stage', bytes: everywhere }]);
    showCursor();
  };

  /** Draws these steps, at least one. @param {number} first @param {number} last */
  const zoom = (first, last) => {
    now.from = Math.max(data.first, Math.min(Math.round(first), data.last));
    now.to = Math.max(now.from, Math.min(Math.round(last), data.last));
    from.value = String(now.from);
    to.value = String(now.to);
    drawChart();
  };

  /** Draws as many steps times this, around the chosen one. @param {number} factor */
  const zoomBy = (factor) => {
    const count = Math.max(1, Math.round((now.to - now.from + 1) * factor));
    const first = Math.max(data.first, Math.round(steps[now.place] - count / 2));
    const end = Math.min(data.last, first + count - 1);
    zoom(Math.max(data.first, end - count + 1), end);
  };

  /** Chooses a step; the chart follows where it is not drawn. @param {number} place */
  const choose = (place) => {
    now.place = place;
    const step = steps[now.place];
    if (step < now.from || step > now.to) {
      const half = Math.floor((now.to - now.from) / 2);
      zoom(step - half, step + half);
    }
    showStep();
  };

  /** The place of the chosen step that is nearest. @param {number} step */
  const nearest = (step) => {
    const before = placeOf(steps, step);
    const after = Math.min(before + 1, steps.length - 1);
    return Math.abs(steps[after] - step) < Math.abs(steps[before] - step) ? after : before;
  };

  /** The step under the pointer. @param {PointerEvent} event */
  const stepAt = (event) => {
    return Math.min(now.from + Math.floor(shareOf(chart, event) * (now.to - now.from + 1)), now.to);
  };

  /** Where the pointer went down, if it is. */
  let down = /** @type {?{x: number, step: number}} */ (null);

  chart.addEventListener('pointerdown', (event) => {
    down = { x: event.clientX, step: stepAt(event) };
    if (event.pointerType === 'touch') choose(nearest(down.step));
    else chart.setPointerCapture(event.pointerId);
  });
  chart.addEventListener('pointermove', (event) => {
    if (event.pointerType === 'touch' || !(down || now.isHeld)) choose(nearest(stepAt(event)));
  });
  chart.addEventListener('pointercancel', () => { down = null; });
  chart.addEventListener('pointerup', (event) => {
    if (!down) return;
    const [start, end] = [down.step, stepAt(event)].sort((a, b) => a - b);
    const isDragged = Math.abs(event.clientX - down.x) > 5;
    down = null;
    if (event.pointerType === 'touch') return;
    if (isDragged) return zoom(start, end);
    now.isHeld = !now.isHeld;
    choose(nearest(stepAt(event)));
  });
  chart.addEventListener('keydown', (event) => {
    if (!isPlain(event)) return;
    const goal = goalOf(event, now.place, 10, 0, steps.length - 1);
    if (goal !== undefined) choose(goal);
    else if (event.key === '+') zoomBy(0.5);
    else if (event.key === '-') zoomBy(2);
    else if (event.key === '0') zoom(data.first, data.last);
    else return;
    event.preventDefault();
  });
  for (const input of [layer, name, changing]) {
    input.addEventListener('input', () => { drawChart(); showVariables(); });
  }
  for (const input of [from, to]) {
    input.addEventListener('change', () => {
      if (input.value && input.validity.valid) zoom(from.valueAsNumber, to.valueAsNumber);
    });
  }
  part('in').addEventListener('click', () => zoomBy(0.5));
  part('out').addEventListener('click', () => zoomBy(2));
  part('whole').addEventListener('click', () => zoom(data.first, data.last));
  chart.setAttribute('aria-valuemin', String(steps[0]));
  chart.setAttribute('aria-valuemax', String(steps[steps.length - 1]));
  part('without').hidden = true;
  part('tool').hidden = false;
  const peak = curve.bytes.indexOf(Math.max(...curve.bytes));
  now.place = nearest(curve.at[peak] ?? data.first);
  zoom(data.first, data.last);
  showStep();
  // Names of layers are drawn where there is room for them.
  addEventListener('resize', drawChart);
})();
