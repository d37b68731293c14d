'use strict';
// What all charts of the page use. The files of this folder are one script in the
// page, this one first; each of the others is one chart or one manner of the page.

/** @param {string} id */
const byId = (id) => /** @type {HTMLElement} */ (document.getElementById(id));

/**
 * What the page holds for a chart; null where it has nothing.
 * @param {string} id
 * @returns {any}
 */
const dataOf = (id) => {
  const element = document.getElementById(id);
  return element && JSON.parse(element.textContent || '');
};

/** @param {number} number */
const grouped = (number) => number.toLocaleString('en-US');

/** Bytes with few digits. @param {number} bytes */
const rounded = (bytes) => {
  const units = ['B', 'KiB', 'MiB', 'GiB'];
  let unit = 0;
  while (bytes >= 1024 && unit < 3) {
    bytes /= 1024;
    unit++;
  }
  return `${Math.round(bytes * 10) / 10} ${units[unit]}`;
};

/** Round values for the scale: at most five, above 0. @param {number} most */
const ticks = (most) => {
  let step = 1;
  while (most / step >= 5) step *= 2;
  return Array.from({ length: Math.floor(most / step) }, (_, at) => (at + 1) * step);
};

/** By the code of a character: the digit that it is (`dense.rs`). */
const DIGITS = new Uint8Array(127);
{
  let digit = 0;
  for (let code = 32; code < 127; code++) {
    if (!'"&<>\\'.includes(String.fromCharCode(code))) DIGITS[code] = digit++;
  }
}

/** Numbers of which each ends with a digit of 45 or more. @param {string} text */
const plain = (text) => {
  /** @type {number[]} */
  const numbers = [];
  let sum = 0, scale = 1;
  for (let place = 0; place < text.length; place++) {
    const digit = DIGITS[text.charCodeAt(place)];
    sum += (digit % 45) * scale;
    scale *= 45;
    if (digit < 45) continue;
    numbers.push(sum);
    sum = 0;
    scale = 1;
  }
  return numbers;
};

/** Numbers as changes, of which 0 is for several. @param {string} text */
const unpacked = (text) => {
  const all = plain(text);
  /** @type {number[]} */
  const numbers = [];
  let last = 0;
  for (let at = 0; at < all.length; at++) {
    last += all[at] % 2 ? -(all[at] + 1) / 2 : all[at] / 2;
    numbers.push(last);
    if (all[at] === 0) for (let more = all[++at]; more > 0; more--) numbers.push(last);
  }
  return numbers;
};

/**
 * Adds an element with a text.
 * @param {Element} parent @param {string} kind @param {string} text @param {string} [look]
 */
const add = (parent, kind, text, look) => {
  const own = document.createElement(kind);
  own.textContent = text;
  if (look) own.className = look;
  parent.append(own);
  return own;
};

/** Adds a part of a drawing. @param {Element} parent @param {string} kind
 * @param {Record<string, string | number>} attributes @param {string} [text] */
const draw = (parent, kind, attributes, text) => {
  const own = document.createElementNS('http://www.w3.org/2000/svg', kind);
  for (const [name, value] of Object.entries(attributes)) own.setAttribute(name, String(value));
  if (text) own.textContent = text;
  parent.append(own);
  return own;
};

/** The place of the last entry of an ascending list that is not above a value; 0 where
 * all are. @param {number[]} list @param {number} value */
const placeOf = (list, value) => {
  let from = 0, to = list.length;
  while (to - from > 1) {
    const middle = (from + to) >> 1;
    if (list[middle] <= value) from = middle; else to = middle;
  }
  return from;
};

/** Was a key pressed without those that make it a command of the browser?
 * @param {KeyboardEvent} event */
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

/** Where the pointer is in the width of an element, from 0 to 1. @param {Element} element
 * @param {MouseEvent} event */
const shareOf = (element, event) => {
  const box = element.getBoundingClientRect();
  return Math.min(Math.max((event.clientX - box.left) / box.width, 0), 1);
};

/** Draws the lines of a scale into a chart, and its numbers beside it. @param {Element} chart
 * @param {Element} scale @param {number[]} values @param {(bytes: number) => number} y */
const drawScale = (chart, scale, values, y) => {
  scale.replaceChildren();
  for (const bytes of values) {
    draw(chart, 'line', { class: 'grid', x1: 0, x2: '100%', y1: y(bytes), y2: y(bytes) });
    draw(scale, 'text', { class: 'axis', x: '100%', y: y(bytes) + 4, 'text-anchor': 'end' }, rounded(bytes));
  }
};
