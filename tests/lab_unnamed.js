// Controls and pictures on the page that have no name for a screen reader. Run by test_lab_browser.py.
() => [...document.querySelectorAll('a, button, input, select, canvas, svg[role=img]')].filter((one) => {
  const label = one.getAttribute('aria-label') || one.textContent.trim() || one.labels?.[0]?.textContent.trim() || one.title;
  return !label && one.getAttribute('aria-hidden') !== 'true';
}).map((one) => one.outerHTML.slice(0, 100))
