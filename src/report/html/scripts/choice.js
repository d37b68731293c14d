// The choices of the reader: view, tile, step and so on. They are in the hash of the address, so that
// a link shows the same.

/** @typedef {{view: string, ipu: ?number, tile: ?number, step: ?number, layer: ?number,
 *   variable: ?string, cuts: ?string, ipus: ?number, memory: ?number, reserve: ?number}} Choice */

/** @type {Choice} */
const NO_CHOICE = {
  view: '', ipu: null, tile: null, step: null, layer: null, variable: null, cuts: null, ipus: null, memory: null, reserve: null,
};

/** The current choice. A layer is a position of the layer order. @type {Choice} */
let chosen = NO_CHOICE;

/** Is the chosen layer among these layers? @param {(?string)[]} layers */
const hasChosenLayer = (layers) => chosen.layer !== null
  && layers.some((own) => layerName(own) === layerName(report.layers[chosen.layer ?? 0]?.name));

/** Functions to call when one of their keys of the choice changes. @type {{keys: (keyof Choice)[], show: () => void, own?: Element}[]} */
let followers = [];

/** Calls `show` now, and whenever one of these keys of the choice changes, as long as `own` is in the page.
 * @param {(keyof Choice)[]} keys @param {() => void} show @param {Element} [own] */
const follow = (keys, show, own) => {
  followers.push({ keys, show, own });
  show();
};

/** Takes another choice, and calls the functions that follow the keys that change. @param {Choice} next */
const take = (next) => {
  const before = chosen;
  chosen = next;
  followers = followers.filter(({ own }) => !own || own.isConnected);
  for (const { keys, show, own } of [...followers]) {
    if (keys.some((key) => chosen[key] !== before[key]) && (!own || own.isConnected)) show();
  }
};

/** The hash of the page's address for a choice. @param {Choice} own */
const hashOf = (own) => '#' + Object.entries(own).filter(([, value]) => value !== null)
  .map(([key, value]) => `${key}=${encodeURIComponent(String(value))}`).join('&');

/** @param {string} hash @returns {Choice} */
const choiceOf = (hash) => {
  const own = /** @type {any} */ ({ ...NO_CHOICE });
  for (const [key, value] of new URLSearchParams(hash.slice(1).replaceAll('+', '%2B'))) {
    if (!(key in own)) continue;
    if (['view', 'variable', 'cuts'].includes(key)) own[key] = value;
    else if (/^\d{1,15}$/.test(value)) own[key] = Number(value);
  }
  return own;
};

/** Changes the choice and the address. @param {Partial<Choice>} change */
const choose = (change) => {
  const next = { ...chosen, ...change };
  const hash = hashOf(next);
  if (hash === hashOf(chosen)) return;
  if (chosen.view && next.view !== chosen.view) history.pushState(null, '', hash); else history.replaceState(null, '', hash);
  take(next);
};

// The reader enters an address or goes back.
addEventListener('popstate', () => {
  const next = choiceOf(location.hash);
  take({ ...next, view: next.view || chosen.view });
});
