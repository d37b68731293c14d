// What to paste, also for cuts that were moved: the report has the lines of all splits.

/** A form for the split that is tried. @param {Json.Configuration} form @param {Known} own */
const configurationOf = (form, own) => {
  const now = own.tried();
  const split = own.computed(now);
  const count = split.stages.length;
  const starts = split.stages.slice(1).map((one) => one.range[0]);
  const faults = own.faults(now, split);
  /** @type {Record<string, string | number | null>} */
  const slots = {
    stages: count, 'last-stage': count - 1, fullest: grouped(split.peak), free: Math.max(now.ipus - count, 0) || null,
    counts: split.stages.map((one) => own.layersIn(one.range)).join(', '),
    shortfall: faults.length ? `does not fit: ${faults.join('; ')}` : null,
  };
  const lines = (form.lines ?? []).flatMap(({ text, position, begins, stages }) => {
    const at = position ?? 0;
    if (stages && (count < stages[0] || stages[1] < count) || typeof begins === 'boolean' && starts.includes(at) !== begins) return [];
    const stage = split.stages.findIndex((one) => at < one.range[1]);
    const pieces = text.map((piece, place) => place % 2 ? { ...slots, stage }[piece] ?? null : piece);
    return pieces.includes(null) ? [] : [`${pieces.join('')}\n`];
  });
  return lines.join('');
};

/** What is pasted, as far as a form can be written. @param {Json.Configuration} form */
const shownConfiguration = (form) => (known?.isMoved() && form.lines ? configurationOf(form, known) : form.text) ?? form.problem ?? '';

/** The whole view. @param {HTMLElement} parent */
const buildConfiguration = (parent) => {
  const part = addPart(parent, 'configuration', 'Configuration');
  const forms = report.configuration ?? [];
  const moved = addAs(part, 'p', 'configuration-moved');
  const select = addSelect(add(part, 'div', '', 'controls'), 'Form', 'configuration-form', forms.map((own) => [own.form, own.form]), () => show());
  const text = set(addAs(part, 'pre', 'configuration-text'), { tabindex: 0 });
  addCopy(add(part, 'p', '', 'copied'), () => text.textContent ?? '', 'Copy', 'configuration-copy', text);
  const { line: command, code } = addCommandLine(part, 'configuration-command', 'command-copy');
  const show = () => {
    const own = forms.find((one) => one.form === select.value) ?? forms[0];
    const isMoved = !!known?.isMoved();
    moved.textContent = isMoved ? 'This is the split as its cuts were moved, or its limits changed.' : '';
    text.textContent = printable(shownConfiguration(own));
    const line = known && !own.problem ? commandOf(known, known.tried()) : '';
    command.hidden = !line;
    code.textContent = `${line} --emit=${own.form}`;
  };
  follow(TRIED, show);
};
