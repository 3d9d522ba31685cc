// Texts on the page whose contrast with their background is below what WCAG AA asks. Run by test_lab_browser.py.
() => {
  const parse = (text) => { const [r, g, b, a = 1] = text.match(/[\d.]+/g).map(Number); return text.startsWith('color(srgb') ? [r * 255, g * 255, b * 255, a] : [r, g, b, a]; };
  const light = ([r, g, b]) => [r, g, b].map((v) => (v /= 255) <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4).reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
  const over = ([r, g, b, a], under) => [r, g, b].map((v, i) => v * a + under[i] * (1 - a));
  const ground = (element) => {
    const layers = [];
    for (let one = element; one; one = one.parentElement) layers.unshift(parse(getComputedStyle(one).backgroundColor));
    return layers.reduce((under, layer) => over(layer, under), [255, 255, 255]);
  };
  const bad = [];
  for (const element of document.querySelectorAll('body *')) {
    const text = [...element.childNodes].filter((node) => node.nodeType === 3 && node.data.trim()).length;
    const box = element.getBoundingClientRect();
    if (!text || !box.width || element.closest('.unseen, .skip, noscript, script')) continue;
    const style = getComputedStyle(element);
    const colour = over(parse(element.closest('svg') ? style.fill : style.color), ground(element));
    const [one, two] = [light(colour), light(ground(element))].sort((x, y) => y - x);
    const ratio = (one + 0.05) / (two + 0.05);
    const large = parseFloat(style.fontSize) >= 24 || (parseFloat(style.fontSize) >= 18.6 && Number(style.fontWeight) >= 700);
    if (ratio < (large ? 3 : 4.5)) bad.push(`${element.tagName}.${element.getAttribute('class')} "${element.textContent.slice(0, 20)}" ${ratio.toFixed(2)}`);
  }
  return [...new Set(bad)];
}
