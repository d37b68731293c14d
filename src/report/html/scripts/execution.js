// The strip of cycles: a stage is shown over the whole width, and names where there is
// room for them.
(() => {
  const strip = document.getElementById('execution-strip');
  if (!strip) return;
  /** @param {string} selector */
  const all = (selector) => /** @type {SVGElement[]} */ ([...strip.querySelectorAll(selector)]);
  const groups = all('.group');
  const home = groups.map((group) => [group.getAttribute('x') ?? '', group.getAttribute('width') ?? '']);
  // The first box of a group is the stage, the others are its layers.
  const stages = groups.map((group) => group.querySelector('.box'))
    .map((box) => box?.getAttribute('data-box')?.startsWith('/execution/stages/') ? box : null);
  const whole = all('.box')[0];
  const status = document.getElementById('execution-shown');
  /** The group over the whole width. @type {?number} */
  let shown = null;

  /** The lines of what the pointer shows of a box. @param {Element} box */
  const said = (box) => (box.querySelector('.edge')?.getAttribute('data-tip') ?? '').split('\n');

  // The page names a box as there is room on a phone.
  const texts = /** @type {SVGTextElement[]} */ (all('.box > text'));
  const names = texts.map((text) => text.textContent ?? '');

  /** The whole name where there is room, or what the page has, or none. */
  const nameBoxes = () => texts.forEach((text, place) => {
    const box = /** @type {Element} */ (text.parentElement);
    const room = (box.querySelector('.edge')?.getBoundingClientRect().width ?? 0) - 6;
    text.textContent = said(box)[0];
    if (text.getComputedTextLength() > room) text.textContent = names[place];
    text.classList.toggle('tight', text.getComputedTextLength() > room);
  });

  const say = () => {
    if (!status) return;
    const stage = shown === null ? null : stages[shown];
    const [name, cycles] = stage ? said(stage) : [];
    status.textContent = stage
      ? `${name} over the whole width: ${cycles}. Escape or the first row shows all stages again.`
      : 'Click a stage, or give it the focus and press Enter, to see its layers over the whole width.';
  };

  /** Shows one group over the whole width, or all. @param {?number} group */
  const show = (group) => {
    const before = shown;
    const hadFocus = strip.contains(document.activeElement);
    shown = group;
    groups.forEach((own, place) => {
      const [x, width] = place === group ? ['0%', '100%'] : home[place];
      own.setAttribute('x', x);
      own.setAttribute('width', width);
      own.toggleAttribute('hidden', group !== null && place !== group);
      stages[place]?.setAttribute('aria-pressed', String(place === group));
    });
    for (const own of all('.beside')) own.toggleAttribute('hidden', group !== null);
    whole.classList.toggle('is-back', group !== null);
    for (const [name, value] of [['role', 'button'], ['tabindex', '0'], ['aria-label', 'Show all stages']]) {
      if (group === null) whole.removeAttribute(name); else whole.setAttribute(name, value);
    }
    const stage = stages[group ?? before ?? 0];
    if (hadFocus && stage instanceof SVGElement) stage.focus();
    nameBoxes();
    say();
  };

  /** @param {Event} event */
  const boxOf = (event) => event.target instanceof Element ? event.target.closest('.box') : null;

  /** What a click on a box does, or Enter on it. @param {?Element} box */
  const choose = (box) => {
    const place = box ? stages.indexOf(box) : -1;
    if (place >= 0) show(place === shown ? null : place);
    else if (box === whole && shown !== null) show(null);
  };

  strip.addEventListener('click', (event) => choose(boxOf(event)));
  strip.addEventListener('keydown', (event) => {
    if (!isPlain(event) || !['Enter', ' '].includes(event.key)) return;
    event.preventDefault();
    choose(boxOf(event));
  });
  document.addEventListener('keydown', (event) => {
    if (isPlain(event) && event.key === 'Escape' && shown !== null) show(null);
  });
  stages.forEach((stage) => {
    stage?.setAttribute('role', 'button');
    stage?.setAttribute('tabindex', '0');
    stage?.setAttribute('aria-label', `${stage ? said(stage).join(', ') : ''}: its layers over the whole width`);
  });
  if (stages.some((stage) => stage)) {
    strip.setAttribute('role', 'group');
    if (status) status.hidden = false;
  }
  show(null);
  new ResizeObserver(nameBoxes).observe(strip);
})();
