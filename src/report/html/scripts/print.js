// What is folded away on screen is there on paper, but for the longest tables.
(() => {
  /** @type {HTMLDetailsElement[]} */
  let folded = [];
  addEventListener('beforeprint', () => {
    folded = [...document.querySelectorAll('details')];
    folded = folded.filter((one) => !one.open && !one.classList.contains('long'));
    for (const one of folded) one.open = true;
  });
  addEventListener('afterprint', () => {
    for (const one of folded) one.open = false;
  });
})();
