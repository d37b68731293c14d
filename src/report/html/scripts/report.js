// Reads the report, and writes its numbers and names. Names come from files and may be hostile: all
// texts go through `printable`.

/** The report that is shown. @type {Json.Report} */
let report = /** @type {any} */ (null);
/** Does the report have numbers that a browser cannot add up exactly? Such numbers are kept as texts. */
let isHuge = false;

/** @param {string} text */
const parsed = (text) => {
  isHuge = false;
  const kept = /\d{16}/.test(text) ? text.replace(/"(?:[^"\\]|\\.)*"|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/g, (own) => {
    if (!/^-?\d{16,}$/.test(own) || Number.isSafeInteger(Number(own))) return own;
    isHuge = true;
    return `"${own}"`;
  }) : text;
  return JSON.parse(kept);
};

/** The value at a JSON pointer. @param {string} pointer @param {any} [from] @returns {any} */
const at = (pointer, from = report) => pointer.split('/').slice(1)
  .reduce((own, key) => own?.[key.replaceAll('~1', '/').replaceAll('~0', '~')], from);

/** The report in the page; null if there is none. @returns {Promise<?string>} */
const embedded = async () => {
  const plain = document.getElementById('report');
  if (plain) return plain.textContent;
  const packed = document.getElementById('packed-report');
  if (!packed) return null;
  const bytes = Uint8Array.from(atob(packed.textContent ?? ''), (one) => one.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream('gzip'));
  return new Response(stream).text();
};

/** Characters that a viewer acts on instead of showing them (`escape.rs`). */
const OBEYED = /[\p{Cc}\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\uffff\u{e0000}-\u{e007f}]/gu;

/** @param {string} text */
const printable = (text) => text.replace(OBEYED,
  (one) => one === '\n' ? one : `\\u{${(one.codePointAt(0) ?? 0).toString(16)}}`);

/** A name for people; a long name is cut. @param {string} name @param {number} [most] */
const short = (name, most = 160) => {
  const all = [...name];
  return all.length > most ? `${all.slice(0, most - 1).join('')}\u2026` : name;
};

/** @param {number | string} number */
const grouped = (number) => String(number).replace(/\B(?=(\d{3})+(?!\d))/g, ',');

/** Writes a difference with its sign. @param {number} number */
const changed = (number) => `${number > 0 ? '+' : ''}${grouped(number)}`;

/** @param {number} count @param {string} name */
const counted = (count, name) => `${grouped(count)} ${name}${count === 1 ? '' : 's'}`;

/** A share of a limit, rounded up, so that more than the limit never looks like the limit.
 * @param {number | string} part @param {number | string} whole */
const ofLimit = (part, whole) => {
  if (!Number(whole)) return '\u2013';
  const tenths = (BigInt(part) * 1000n + BigInt(whole) - 1n) / BigInt(whole);
  return `${tenths / 10n}.${tenths % 10n} %`;
};

/** The shares of all parts of a whole. They are rounded so that they add up to 100.0 %. @param {number[]} parts @returns {string[]} */
const shares = (parts) => {
  const whole = parts.reduce((a, b) => a + b, 0) || 1;
  const exact = parts.map((part) => part / whole * 1000);
  const tenths = exact.map(Math.floor);
  let left = (parts.some((part) => part > 0) ? 1000 : 0) - tenths.reduce((a, b) => a + b, 0);
  const order = [...exact.keys()].sort((a, b) => (exact[b] - tenths[b]) - (exact[a] - tenths[a]) || a - b);
  for (const place of order) if (left > 0 && parts[place] > 0) { tenths[place]++; left--; }
  return tenths.map((own) => `${(own / 10).toFixed(1)} %`);
};

/** A number with at least three digits, and at most three decimals. @param {number} number */
const digits = (number) => number >= 1000 ? grouped(Math.round(number))
  : number.toFixed(number >= 100 ? 0 : number >= 10 ? 1 : number >= 1 ? 2 : 3);

/** The name of a position of the layer order. @param {?string} [layer] */
const layerName = (layer) => layer ?? { 'none-first': 'None', 'out-with-in': 'In Out' }[
  /** @type {'none-first'} */ (report.pseudo_layers)] ?? 'In';

/** Replaces three or more names with the same prefix and consecutive numbers by one: `encoder.0-11`. @param {string[]} names */
const numberRuns = (names) => {
  /** @param {string} name */
  const numbered = (name) => name.match(/^(|.*\D)(0|[1-9]\d{0,14})$/s);
  /** @type {string[][]} */
  const runs = [];
  for (const name of names) {
    const [before, now] = [numbered(runs.at(-1)?.at(-1) ?? ''), numbered(name)];
    if (before && now && before[1] === now[1] && +before[2] + 1 === +now[2]) runs[runs.length - 1].push(name);
    else runs.push([name]);
  }
  return runs.flatMap((run) => run.length > 2 ? [`${run[0]}-${numbered(run[run.length - 1])?.[2]}`] : run);
};

/** The layers of a stage in a line; a long list is shortened. @param {(?string)[]} layers */
const layerList = (layers) => {
  const names = layers.map((own) => short(own ?? (report.pseudo_layers === 'none-first' ? 'None' : 'In'), 60));
  const runs = names.length > 8 ? numberRuns(names) : names;
  return runs.length > 8 ? `${names[0]} \u2026 ${names.at(-1)} (${names.length})` : runs.join(' ');
};

/** The layers of all stages. @param {(?string)[][]} stages */
const stageList = (stages) => `[ ${stages.map(layerList).join(' | ')} ]`;

/** A section of the report for people, if the report has it. @param {string} id */
const sectionOf = (id) => report.sections?.find((own) => own.id === id);

/** The sentences of a section, in phrases. @param {string} id */
const sentencesOf = (id) => (sectionOf(id)?.blocks ?? []).flatMap((own) =>
  'line' in own ? [own.line] : 'under' in own ? [own.under] : 'paragraph' in own ? [own.paragraph] : []);

/** The index of the last entry of an ascending list that is at most `value`; 0 if there is none. @param {ArrayLike<number>} list @param {number} value */
const placeOf = (list, value) => Math.max(Array.prototype.findLastIndex.call(list, (own) => own <= value), 0);

/** @typedef {{ipu: number, at: string, tile: Json.FullestTile | Json.RecordedTileFacts, curve?: ?Json.Curve, stage?: Json.Stage, compiled?: Json.IpuFit}} OneIpu
 *   `at` is the IPU's place in the report */

/** The stages of a split, or the IPUs of a compilation, as entries of one type. @param {Json.Report} [own] @returns {OneIpu[]} */
const stagesOf = (own = report) => own.split
  ? own.split.stages.map((stage, place) => ({ stage, at: `/split/stages/${place}`, ipu: stage.stage, tile: stage.fullest_tile, curve: stage.fullest_tile_curve }))
  : (own.fit?.ipus ?? []).map((compiled, place) => ({ compiled, at: `/fit/ipus/${place}`, ipu: compiled.ipu, tile: compiled.fullest_tile, curve: compiled.curve }));

/** The IPU that is nearest to its limit. @template {{tile: {free: number}}} T @param {T[]} all */
const nearestOf = (all) => all.reduce((a, b) => Number(b.tile.free) < Number(a.tile.free) ? b : a);

/** The stage that contains a position. @param {number} position */
const stageOfPosition = (position) => (report.split?.stages ?? []).findIndex(
  ({ positions }) => positions.start <= position && position < positions.end);
