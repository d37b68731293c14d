// Makes elements and drawings. Names are only ever set as text, never as HTML.

/** @param {string} id */
const byId = (id) => /** @type {HTMLElement} */ (document.getElementById(id));

/** @template {Element} T @param {T} own @param {Record<string, string | number>} attributes */
const set = (own, attributes) => {
  for (const [name, value] of Object.entries(attributes)) own.setAttribute(name, String(value));
  return own;
};

/** Adds an element with a text. @template {keyof HTMLElementTagNameMap} K
 * @param {Element} parent @param {K} kind @param {string} [text] @param {string} [look] */
const add = (parent, kind, text, look) => {
  const own = document.createElement(kind);
  if (text) own.textContent = printable(text);
  if (look) own.className = look;
  parent.append(own);
  return own;
};

/** Adds an element with an id. @template {keyof HTMLElementTagNameMap} K
 * @param {Element} parent @param {K} kind @param {string} id @param {string} [text] @param {string} [look] */
const addAs = (parent, kind, id, text, look) => set(add(parent, kind, text, look), { id });

/** @typedef {(string | [number, string] | false | null | undefined | 0)[]} Pieces texts, and numbers with their
 *   places in the report; other values are not shown */

/** Adds pieces to an element. @template {Element} T @param {T} own @param {Pieces} pieces
 * @param {'json' | 'now'} [place] `now` for places in the report of a run that judges what is tried */
const write = (own, pieces, place = 'json') => {
  for (const one of pieces) {
    if (typeof one === 'string') own.append(printable(one)); else if (one) add(own, 'span', grouped(one[0])).dataset[place] = one[1];
  }
  return own;
};

/** Adds an element with pieces. @template {keyof HTMLElementTagNameMap} K
 * @param {Element} parent @param {K} kind @param {Pieces} pieces @param {string} [look] */
const addLine = (parent, kind, pieces, look) => write(add(parent, kind, '', look), pieces);

/** Adds a figure with its name and an explanation. @param {HTMLElement} list
 * @param {string} name @param {Pieces} value @param {Pieces} [more] @param {string} [look] */
const addFigure = (list, name, value, more, look) => {
  const own = add(list, 'div');
  add(own, 'dt', name);
  const figure = addLine(own, 'dd', value, look);
  if (more) addLine(figure, 'small', more);
  return figure;
};

/** Adds names with their values; facts without a value are left out. @param {Element} parent
 * @param {[string, string | Pieces | false | null | undefined, string?][]} facts */
const addFacts = (parent, facts) => {
  const list = add(parent, 'dl', '', 'facts');
  for (const [name, value, look] of facts) {
    if (!value) continue;
    add(list, 'dt', name);
    addLine(list, 'dd', typeof value === 'string' ? [short(value, 400)] : value, look);
  }
};

/** Adds a button. @param {Element} parent @param {string} text @param {() => void} press @param {string} [id] @param {string} [look] */
const addButton = (parent, text, press, id, look) => {
  const own = add(parent, 'button', text, look);
  own.type = 'button';
  if (id) own.id = id;
  own.addEventListener('click', press);
  return own;
};

/** Adds a field with its name. @param {Element} parent @param {string} name @param {string} type @param {string} id
 * @param {() => void} enter is called after each change @param {Record<string, string | number>} [attributes] */
const addField = (parent, name, type, id, enter, attributes) => {
  const own = set(add(add(parent, 'label', `${name} `), 'input'), { type, id, ...attributes });
  own.addEventListener('input', enter);
  return own;
};

/** Adds a choice with its name. @param {Element} parent @param {string} name @param {string} id
 * @param {[string, string][]} options values and their names @param {(value: string) => void} pick */
const addSelect = (parent, name, id, options, pick) => {
  const own = addAs(add(parent, 'label', `${name} `), 'select', id);
  for (const [value, text] of options) add(own, 'option', text).value = value;
  own.addEventListener('change', () => pick(own.value));
  return own;
};

/** Adds a part that the reader unfolds. It is filled when it is first opened.
 * @param {Element} parent @param {string} name @param {(inner: HTMLElement) => void} fill */
const addFolded = (parent, name, fill) => {
  const own = add(parent, 'details');
  add(own, 'summary', name);
  const inner = add(own, 'div');
  own.addEventListener('toggle', () => fill(inner), { once: true });
};

/** Adds a button that copies a text. If the browser does not let a page copy, the text in `shown`, or
 * in a new field, is selected instead. @param {Element} parent @param {() => string} text
 * @param {string} name @param {string} [id] @param {Element} [shown] */
const addCopy = (parent, text, name, id, shown) => {
  const button = addButton(parent, name, async () => {
    try {
      await navigator.clipboard.writeText(text());
      said.textContent = 'Copied.';
    } catch {
      if (shown) getSelection()?.selectAllChildren(shown);
      else {
        const area = set(add(parent, 'textarea'), { 'aria-label': name });
        area.value = text();
        area.select();
      }
      said.textContent = 'Selected: copy it with the keyboard.';
    }
  }, id);
  const said = set(add(parent, 'span', '', 'soft'), { role: 'status' });
  if (id) said.id = id.replace('copy', 'copied');
  return button;
};

/** Adds a command line with a button that copies it, and returns both. @param {Element} parent @param {string} codeId @param {string} copyId */
const addCommandLine = (parent, codeId, copyId) => {
  const line = add(parent, 'p', 'On the command line: ', 'copied');
  const code = addAs(line, 'code', codeId);
  line.append(' ');
  addCopy(line, () => code.textContent ?? '', 'Copy', copyId, code);
  return { line, code };
};

/** Adds a part of a drawing. @param {Element} parent @param {string} kind
 * @param {Record<string, string | number>} attributes @param {string} [text] */
const draw = (parent, kind, attributes, text) => {
  const own = set(document.createElementNS('http://www.w3.org/2000/svg', kind), attributes);
  if (text) own.textContent = printable(text);
  parent.append(own);
  return own;
};

/** A sample of a colour. @param {Element} parent @param {string} look */
const addSwatch = (parent, look) => draw(draw(parent, 'svg', { viewBox: '0 0 10 10', 'aria-hidden': 'true', class: 'swatch' }),
  'rect', { class: look, width: 10, height: 10 });

/** Adds a legend. @param {Element} parent @param {[string, string][]} entries looks and names */
const addLegend = (parent, entries) => {
  const list = add(parent, 'ul', '', 'legend');
  for (const [look, name] of entries) {
    const entry = add(list, 'li');
    addSwatch(entry, look);
    entry.append(printable(name));
  }
};

/** Adds a bar of parts, with a mark at the limit. Its width stands for `whole`. @param {Element} parent
 * @param {{look: string, name: string, bytes: number}[]} parts @param {number} whole
 * @param {number} [limit] @param {string} [unit] */
const addBar = (parent, parts, whole, limit, unit = 'bytes') => {
  const svg = draw(parent, 'svg', { class: 'bar', height: 20, role: 'img', 'aria-label':
    parts.filter((own) => own.bytes > 0).map((own) => `${own.name} ${grouped(own.bytes)}`).join(', ') || 'nothing' });
  draw(svg, 'rect', { class: 'track', width: '100%', height: 20 });
  let from = 0;
  for (const { look, name, bytes } of parts) {
    if (bytes <= 0) continue;
    draw(svg, 'rect', {
      class: look, x: `${from / whole * 100}%`, width: `${bytes / whole * 100}%`, height: 20, 'data-tip': printable(`${name}\n${grouped(bytes)} ${unit}`),
    });
    from += bytes;
  }
  const x = `${(limit ?? 0) / whole * 100}%`;
  if (limit) draw(svg, 'line', { class: 'limit', x1: x, x2: x, y1: 0, y2: 20 });
};

/** Adds bars, one below the other, each with a name and a value. @param {Element} parent
 * @param {{name: string, press?: () => void, parts: {look: string, name: string, bytes: number}[], value: string, isOver?: boolean}[]} all
 * @param {number} whole @param {number[]} [limits] @param {string} [unit] */
const addBars = (parent, all, whole, limits, unit) => {
  const bars = add(parent, 'div', '', 'bars');
  all.forEach(({ name, press, parts, value, isOver }, place) => {
    const label = add(bars, 'div', press ? '' : name, 'label');
    if (press) addButton(label, name, press, '', 'link');
    addBar(bars, parts, whole, limits?.[place], unit);
    add(bars, 'div', value, isOver ? 'value bad' : 'value');
  });
};

/** Adds a sentence of the report. @param {Element} parent @param {Json.Sentence} phrases */
const addSentence = (parent, phrases) => {
  for (const [place, phrase] of phrases.entries()) {
    const [kind, own] = Object.entries(phrase)[0];
    switch (kind) {
      case 'amount': parent.append(`${grouped(own)} ${own === 1 ? 'byte' : 'bytes'}`); break;
      case 'bytes':
      case 'count': parent.append(grouped(own)); break;
      case 'code': add(parent, 'code', own); break;
      case 'layers': add(parent, 'span', layerList(own), 'name'); break;
      case 'stages': add(parent, 'span', stageList(own), 'name'); break;
      case 'text': parent.append(printable(place ? own : own.trimStart().replace(/^./, (/** @type {string} */ one) => one.toUpperCase()))); break;
      default: add(parent, 'span', short(own, 400), 'name');
    }
  }
  parent.append('.');
};

/** Adds the sentences of a section. If there are many, the middle ones are folded away.
 * @param {Element} parent @param {string} id @param {string} [look] */
const addSentences = (parent, id, look) => {
  const sentences = sentencesOf(id);
  if (!sentences.length) return;
  const box = add(parent, 'div', '', look ?? 'said');
  /** @param {Element} inner @param {number} from @param {number} [to] */
  const list = (inner, from, to) => {
    const own = add(inner, 'ul');
    for (const sentence of sentences.slice(from, to)) addSentence(add(own, 'li'), sentence);
  };
  if (sentences.length < 14) return list(box, 0);
  list(box, 0, 4);
  addFolded(box, `${sentences.length - 10} more`, (inner) => list(inner, 4, -6));
  list(box, -6);
};

/** Adds a part with a heading that links can point to. @param {Element} parent @param {string} id @param {string} title
 * @param {string} [said] an explanation */
const addPart = (parent, id, title, said) => {
  const own = addAs(parent, 'section', id);
  add(own, 'h2', title);
  if (said) add(own, 'p', said, 'soft');
  return own;
};

/** Was a key pressed without Ctrl, Alt or Meta, with which it would be a command of the browser? @param {KeyboardEvent} event */
const isPlain = (event) => !event.ctrlKey && !event.altKey && !event.metaKey;

/** To which of the places `first` to `last` a key moves from one of them: to the next, or
 * `far` away; nothing where it moves nowhere. @param {KeyboardEvent} event
 * @param {number} place @param {number} far @param {number} first @param {number} last */
const goalOf = (event, place, far, first, last) => {
  /** @type {Record<string, number>} */
  const goals = {
    ArrowLeft: place - 1, ArrowDown: place - 1, ArrowRight: place + 1, ArrowUp: place + 1,
    PageDown: place - far, PageUp: place + far, Home: first, End: last,
  };
  const goal = goals[event.key];
  return goal === undefined ? undefined : Math.min(Math.max(goal, first), last);
};

/** The position of a pointer in an element, from 0 at the left and at the top to 1 at the right and at the bottom.
 * @param {Element} element @param {{clientX: number, clientY: number}} point */
const sharesOf = (element, { clientX, clientY }) => {
  const { left, top, width, height } = element.getBoundingClientRect();
  return [(clientX - left) / width, (clientY - top) / height].map((own) => Math.min(Math.max(own, 0), 1));
};

/** Calls `show` whenever the width of an element changes. @param {Element} own @param {() => void} show */
const onResize = (own, show) => {
  let width = own.clientWidth;
  new ResizeObserver(() => requestAnimationFrame(() => {
    if (!own.clientWidth || own.clientWidth === width) return;
    width = own.clientWidth;
    show();
  })).observe(own);
};

// The text in `data-tip` of the element under the pointer is shown beside the pointer.
const tip = byId('tip');
const hideTip = () => tip.classList.remove('shown');
document.addEventListener('pointermove', (event) => {
  const over = event.target instanceof Element && event.target.closest('[data-tip]');
  const text = over && /** @type {HTMLElement} */ (over).dataset.tip;
  if (!text) return hideTip();
  tip.textContent = printable(text);
  tip.classList.add('shown');
  const { offsetWidth: width, offsetHeight: height } = tip;
  tip.style.left = `${Math.max(Math.min(event.clientX + 14, innerWidth - width - 8), 4)}px`;
  tip.style.top = `${event.clientY + 18 + height > innerHeight ? event.clientY - height - 12 : event.clientY + 18}px`;
});
document.addEventListener('pointerleave', hideTip);
addEventListener('scroll', hideTip, { passive: true });
