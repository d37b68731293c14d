// The choices of the reader: view, tile, step and so on. They are in the hash of the address, so that
// a link shows the same.

/** @typedef {{view: string, ipu: ?number, tile: ?number, step: ?number, layer: ?number,
 *   variable: ?string, cuts: ?string, ipus: ?number, memory: ?number, reserve: ?number}} Choice */

/** @returns {Choice} */
const noChoice = () => ({
  view: '', ipu: null, tile: null, step: null, layer: null, variable: null, cuts: null,
  ipus: null, memory: null, reserve: null,
});

const NUMBERS = ['ipu', 'tile', 'step', 'layer', 'ipus', 'memory', 'reserve'];

/** The current choice. A layer is a position of the layer order. @type {Choice} */
let chosen = noChoice();

/** Is the chosen layer among these layers? @param {(?string)[]} layers */
const hasChosenLayer = (layers) => chosen.layer !== null
  && layers.some((own) => layerName(own) === layerName(report.layers[chosen.layer ?? 0]?.name));

/** Functions to call when one of their keys of the choice changes. @type {{keys: (keyof Choice)[], show: () => void, own?: Element}[]} */
let followers = [];

/** Calls `show` whenever one of these keys of the choice changes, as long as `own` is in the page.
 * @param {(keyof Choice)[]} keys @param {() => void} show @param {Element} [own] */
const onChoice = (keys, show, own) => followers.push({ keys, show, own });

/** Calls `show` now, and whenever one of these keys of the choice changes. @param {(keyof Choice)[]} keys @param {() => void} show @param {Element} [own] */
const follow = (keys, show, own) => {
  onChoice(keys, show, own);
  show();
};

/** Calls the functions that follow keys of the choice that differ from `before`. @param {Choice} before */
const letFollow = (before) => {
  followers = followers.filter(({ own }) => !own || own.isConnected);
  for (const { keys, show, own } of [...followers]) {
    if (keys.some((key) => chosen[key] !== before[key]) && (!own || own.isConnected)) show();
  }
};

/** The hash of the page's address for a choice. @param {Choice} own */
const hashOf = (own) => '#' + Object.entries(own).filter(([, value]) => value !== null && value !== '')
  .map(([key, value]) => `${key}=${encodeURIComponent(String(value))}`).join('&');

/** @param {string} hash @returns {Choice} */
const choiceOf = (hash) => {
  const own = /** @type {any} */ (noChoice());
  for (const [key, value] of new URLSearchParams(hash.slice(1).replaceAll('+', '%2B'))) {
    if (!(key in own)) continue;
    if (!NUMBERS.includes(key)) own[key] = value;
    else if (/^\d{1,15}$/.test(value)) own[key] = Number(value);
  }
  return own;
};

/** Changes the choice and the address, and calls the functions that follow the changed keys. @param {Partial<Choice>} change */
const choose = (change) => {
  const before = chosen;
  chosen = { ...chosen, ...change };
  const keys = /** @type {(keyof Choice)[]} */ (Object.keys(chosen)).filter((key) => chosen[key] !== before[key]);
  if (!keys.length) return;
  const hash = hashOf(chosen);
  if (keys.includes('view') && before.view) history.pushState(null, '', hash); else history.replaceState(null, '', hash);
  letFollow(before);
};

/** Takes the choice from the page's address when the reader enters an address or goes back. */
const followAddress = () => addEventListener('popstate', () => {
  const next = choiceOf(location.hash);
  if (!next.view) next.view = chosen.view;
  const before = chosen;
  chosen = next;
  letFollow(before);
});
