// Numbers under the pointer, of all charts that are read at a step or a tile.
(() => {
  /**
   * @typedef {object} Chart
   * @property {string} what runs to the right
   * @property {number} first
   * @property {number} last
   * @property {number[]} at where the entries of the series begin to hold, ascending
   * @property {[string, number][]} fixed bytes that are the same everywhere
   * @property {[string, number[]][]} series
   * @property {boolean} adds do all of them together make the height?
   * @property {boolean} banded do layers have bands in it?
   */
  /** @type {{charts: Chart[], bands: [string, number, number][]}} */
  const data = dataOf('charts');
  const tip = byId('tip');

  const hide = () => {
    tip.classList.remove('shown');
    for (const line of document.querySelectorAll('.cursor.shown')) line.classList.remove('shown');
  };

  /** @param {string} text @param {number} x @param {number} y */
  const show = (text, x, y) => {
    tip.textContent = text;
    tip.classList.add('shown');
    const box = tip.getBoundingClientRect();
    const left = x + 14 + box.width > innerWidth ? x - 14 - box.width : x + 14;
    tip.style.left = Math.max(4, left) + 'px';
    tip.style.top = Math.max(4, Math.min(y - box.height - 10, innerHeight - box.height - 4)) + 'px';
  };

  /** @param {Chart} chart @param {number} at */
  const described = (chart, at) => {
    const place = placeOf(chart.at, at);
    const lines = [chart.what + ' ' + grouped(at)];
    for (const band of data.bands) {
      if (chart.banded && band[1] <= at && at <= band[2]) lines[0] += ', layer ' + band[0];
    }
    let sum = 0;
    for (const [name, bytes] of chart.fixed) {
      lines.push(name + ': ' + grouped(bytes));
      sum += bytes;
    }
    for (const [name, bytes] of chart.series) {
      lines.push(name + ': ' + grouped(bytes[place]));
      sum += bytes[place];
    }
    if (chart.adds) lines.push('together: ' + grouped(sum) + ' bytes');
    return lines.join('\n');
  };

  /** @param {SVGElement} svg @param {PointerEvent} event */
  const overChart = (svg, event) => {
    const chart = data.charts[Number(svg.dataset.chart)];
    const at = Math.min(chart.first + Math.floor(shareOf(svg, event) * (chart.last - chart.first + 1)), chart.last);
    const middle = (at - chart.first + 0.5) / (chart.last - chart.first + 1) * 100;
    const line = svg.querySelector('.cursor');
    line?.setAttribute('x1', middle + '%');
    line?.setAttribute('x2', middle + '%');
    line?.classList.add('shown');
    show(described(chart, at), event.clientX, event.clientY);
  };

  /** @param {PointerEvent} event */
  const look = (event) => {
    hide();
    const target = event.target instanceof Element ? event.target : null;
    const part = /** @type {?HTMLElement} */ (target?.closest('[data-tip]'));
    if (part) return show(part.dataset.tip ?? '', event.clientX, event.clientY);
    const svg = /** @type {?SVGElement} */ (target?.closest('[data-chart]'));
    if (svg) overChart(svg, event);
  };
  document.addEventListener('pointermove', look);
  document.addEventListener('pointerdown', look);
  document.addEventListener('scroll', hide, { passive: true });
  document.documentElement.addEventListener('pointerleave', hide);
})();
