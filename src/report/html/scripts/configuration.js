// What to paste.

/** The whole view. @param {HTMLElement} parent */
const buildConfiguration = (parent) => {
  const part = addPart(parent, 'configuration', 'Configuration');
  const forms = report.configuration ?? [];
  if (!forms.length) {
    add(part, 'p', 'The report has no split, so there is nothing to paste.');
    return;
  }
  const select = addSelect(add(part, 'div', '', 'controls'), 'Form', 'configuration-form', forms.map((/** @type {any} */ own) => [own.form, own.form]));
  const text = addAs(part, 'pre', 'configuration-text');
  text.tabIndex = 0;
  const show = () => {
    const own = forms.find((/** @type {any} */ one) => one.form === select.value);
    text.textContent = printable(own.text ?? own.problem);
  };
  addCopy(add(part, 'p', '', 'copied'), () => text.textContent ?? '', 'Copy', 'configuration-copy', text);
  select.addEventListener('change', show);
  show();
};
