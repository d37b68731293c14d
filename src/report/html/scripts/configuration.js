// The configuration to paste. The report has the lines for all splits, so cuts can be moved.

/** The text of a form, or its notes, for the split that the reader tries. @param {Json.Configuration} form @param {Known} own @param {boolean} isNote */
const configurationOf = (form, own, isNote) => {
  const now = own.tried();
  const split = own.computed(now);
  const count = split.stages.length;
  const starts = split.stages.slice(1).map((one) => one.range[0]);
  const faults = own.faults(now, split);
  /** @type {Record<string, string | number | null>} */
  const slots = {
    stages: count, 'last-stage': count - 1, fullest: grouped(split.peak), free: Math.max(now.ipus - count, 0) || null,
    shortfall: faults.length ? `does not fit: ${faults.join('; ')}` : null,
  };
  /** @param {string[]} items */
  const listsOf = (items) => {
    const lists = split.stages.map((one) => items.slice(...one.range).filter(Boolean));
    const rest = items.slice(split.stages[count - 1].range[1]);
    const counts = lists.map((one) => one.length);
    if (rest.length && count > 1) lists.push(rest); else lists[count - 1].push(...rest);
    return { counts: counts.join(', '), numbers: counts.join(' '), lists: lists.map((one) => `[${one.join(', ')}]`).join(', ') };
  };
  const lines = (form.lines ?? []).filter(({ note }) => !!note === isNote);
  const all = lines.flatMap(({ text, position, begins, stages, items = [] }) => {
    const at = position ?? 0;
    if (stages && (count < stages[0] || stages[1] < count) || typeof begins === 'boolean' && starts.includes(at) !== begins) return [];
    const stage = split.stages.findIndex((one) => at < one.range[1]);
    const pieces = text.map((piece, place) => place % 2 ? { ...slots, ...listsOf(items), stage }[piece] ?? null : piece);
    return pieces.includes(null) ? [] : [`${pieces.join('')}\n`];
  });
  return all.join('');
};

/** The text of a form to paste. @param {Json.Configuration} form */
const shownConfiguration = (form) => known?.isMoved() && form.lines ? configurationOf(form, known, false) : form.text;

/** The notes beside the text of a form that has no comments. @param {Json.Configuration} form */
const notesOf = (form) => (known?.isMoved() && form.lines ? configurationOf(form, known, true) : form.notes) ?? '';

/** Builds the view of the configuration to paste. @param {HTMLElement} parent */
const buildConfiguration = (parent) => {
  const part = addPart(parent, 'configuration', 'Configuration');
  const forms = report.configuration ?? [];
  const moved = addAs(part, 'p', 'configuration-moved');
  const select = addSelect(add(part, 'div', '', 'controls'), 'Form', 'configuration-form', forms.map((own) => [own.form, own.form]), () => show());
  const notes = addAs(part, 'pre', 'configuration-notes');
  const text = set(addAs(part, 'pre', 'configuration-text'), { tabindex: 0 });
  addCopy(add(part, 'p', '', 'copied'), () => text.textContent ?? '', 'Copy', 'configuration-copy', text);
  const { line: command, code } = addCommandLine(part, 'configuration-command', 'command-copy');
  const show = () => {
    const own = forms.find((one) => one.form === select.value) ?? forms[0];
    const isMoved = !!known?.isMoved();
    moved.textContent = isMoved ? 'This is the split with the cuts that you moved and the limits that you changed.' : '';
    text.textContent = printable(shownConfiguration(own));
    notes.textContent = printable(notesOf(own));
    notes.hidden = !notes.textContent;
    const line = known ? commandOf(known, known.tried()) : '';
    command.hidden = !line;
    code.textContent = `${line} --emit=${own.form}`;
  };
  follow(TRIED, show);
};
