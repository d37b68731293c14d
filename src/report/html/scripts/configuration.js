// The configuration to paste. The report has the lines for all splits, so cuts can be moved.

/** The text of a form, or its notes, for the split that the reader tries. @param {Json.Configuration} form @param {Known} own @param {boolean} isNote */
const configurationOf = (form, own, isNote) => {
  const { stages: all, ipus, peak, faults } = own.tried();
  const count = all.length;
  /** @type {Record<string, string | number | null>} */
  const slots = {
    stages: count, 'last-stage': count - 1, fullest: grouped(peak), free: Math.max(ipus - count, 0) || null,
    shortfall: faults.length ? `does not fit: ${faults.join('; ')}` : null,
  };
  /** @param {string[]} items */
  const listsOf = (items) => {
    const lists = all.map((one) => items.slice(...one.range).filter(Boolean));
    const rest = items.slice(all[count - 1].range[1]);
    const counts = lists.map((one) => one.length);
    if (rest.length && count > 1) lists.push(rest); else lists[count - 1].push(...rest);
    return { counts: counts.join(', '), numbers: counts.join(' '), lists: lists.map((one) => `[${one.join(', ')}]`).join(', ') };
  };
  return (form.lines ?? []).filter(({ note }) => !!note === isNote).flatMap(({ text, position, begins, stages, items = [] }) => {
    const at = position ?? 0;
    const stage = all.findIndex((one) => at < one.range[1]);
    const isStart = stage > 0 && all[stage].range[0] === at;
    if (stages && (count < stages[0] || stages[1] < count) || typeof begins === 'boolean' && isStart !== begins) return [];
    const pieces = text.map((piece, place) => place % 2 ? { ...slots, ...listsOf(items), stage }[piece] ?? null : piece);
    return pieces.includes(null) ? [] : [`${pieces.join('')}\n`];
  }).join('');
};

/** The text of a form to paste, or the notes beside it if the form has no comments. @param {Json.Configuration} form @param {boolean} [isNote] */
const shownConfiguration = (form, isNote = false) => {
  if (!known?.isMoved()) return (isNote ? form.notes : form.text) ?? '';
  if (form.lines?.length) return configurationOf(form, known, isNote);
  const command = commandOf(known);
  return isNote ? '' : command ? `The configuration of these cuts is printed by: ${command} --emit=${form.form}\n` : 'The report has no configuration of these cuts.\n';
};

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
    notes.textContent = printable(shownConfiguration(own, true));
    const line = known ? commandOf(known) : '';
    command.hidden = !line;
    code.textContent = `${line} --emit=${own.form}`;
  };
  follow(TRIED, show);
};
