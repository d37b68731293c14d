'use strict';
(() => {
  const tip = document.getElementById('tip');
  const charts = JSON.parse(document.getElementById('charts').textContent);
  const grouped = (number) => number.toLocaleString('en-US');

  const hide = () => {
    tip.classList.remove('shown');
    for (const line of document.querySelectorAll('.cursor.shown')) line.classList.remove('shown');
  };

  const show = (text, x, y) => {
    tip.textContent = text;
    tip.classList.add('shown');
    const box = tip.getBoundingClientRect();
    const left = x + 14 + box.width > innerWidth ? x - 14 - box.width : x + 14;
    tip.style.left = Math.max(4, left) + 'px';
    tip.style.top = Math.max(4, Math.min(y - box.height - 10, innerHeight - box.height - 4)) + 'px';
  };

  // The place of the last entry of an ascending list that is not above a value.
  const placeOf = (list, value) => {
    let from = 0, to = list.length;
    while (to - from > 1) {
      const middle = (from + to) >> 1;
      if (list[middle] <= value) from = middle; else to = middle;
    }
    return from;
  };

  const described = (chart, at) => {
    const place = placeOf(chart.at, at);
    const lines = [chart.what + ' ' + grouped(at)];
    for (const band of charts.bands) {
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

  const overChart = (svg, event) => {
    const chart = charts.charts[svg.dataset.chart];
    const box = svg.getBoundingClientRect();
    const share = Math.min(Math.max((event.clientX - box.left) / box.width, 0), 1);
    const at = Math.min(chart.first + Math.floor(share * (chart.last - chart.first + 1)), chart.last);
    const line = svg.querySelector('.cursor');
    const middle = (at - chart.first + 0.5) / (chart.last - chart.first + 1) * 100;
    line.setAttribute('x1', middle + '%');
    line.setAttribute('x2', middle + '%');
    line.classList.add('shown');
    show(described(chart, at), event.clientX, event.clientY);
  };

  const look = (event) => {
    hide();
    const target = event.target instanceof Element ? event.target : null;
    const part = target && target.closest('[data-tip]');
    if (part) return show(part.dataset.tip, event.clientX, event.clientY);
    const svg = target && target.closest('[data-chart]');
    if (svg) overChart(svg, event);
  };
  document.addEventListener('pointermove', look);
  document.addEventListener('pointerdown', look);
  document.addEventListener('scroll', hide, { passive: true });
  document.documentElement.addEventListener('pointerleave', hide);

  // What is folded away on screen is there on paper, but for the longest.
  let folded = [];
  addEventListener('beforeprint', () => {
    folded = [...document.querySelectorAll('details:not([open], .long)')];
    for (const one of folded) one.open = true;
  });
  addEventListener('afterprint', () => {
    for (const one of folded) one.open = false;
  });
})();
