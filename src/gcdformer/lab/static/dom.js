// Elements, numbers and words: the little that the views share. Text is only ever set as text, never parsed as HTML.

const SVG = "http://www.w3.org/2000/svg";

function build(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "style") Object.entries(value).forEach(([key, one]) => element.style.setProperty(key, one));
    else if (name === "text") element.textContent = value;
    else if (name === "value") element.value = value;
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.flat(Infinity).filter((one) => one !== null && one !== undefined && one !== false));
  return element;
}

export const h = (tag, attributes, ...children) => build(document.createElement(tag), attributes, children);
export const s = (tag, attributes, ...children) => build(document.createElementNS(SVG, tag), attributes, children);

export const percent = (value, digits = 1) =>
  value === null || value === undefined ? "–" : `${value.toFixed(digits)}\u00a0%`;
export const share = (value) =>
  value >= 0.9995
    ? "100\u00a0%"
    : value < 0.0005
      ? value > 0
        ? "<\u00a00.1\u00a0%"
        : "0\u00a0%"
      : `${(100 * value).toFixed(value > 0.985 || value < 0.015 ? 1 : 0)}\u00a0%`;
export const whole = (value) => value.toLocaleString("en-US");
export const millions = (count) =>
  count >= 1e6 ? `${(count / 1e6).toFixed(2)}\u00a0M` : count >= 1e3 ? `${Math.round(count / 1e3)}\u00a0k` : `${count}`;
export const answer = (value) => (value === null ? "?" : `${value}`);
export const list = (values) => values.join(", ");

export function minutes(seconds) {
  if (seconds < 90) return `${Math.round(seconds)}\u00a0s`;
  return seconds < 5400
    ? `${(seconds / 60).toFixed(seconds < 600 ? 1 : 0)}\u00a0min`
    : `${(seconds / 3600).toFixed(1)}\u00a0h`;
}

export function ago(timestamp) {
  const seconds = Math.max(0, Date.now() / 1000 - timestamp);
  for (const [length, name] of [
    [86400, "day"],
    [3600, "hour"],
    [60, "minute"],
  ]) {
    const count = Math.floor(seconds / length);
    if (count) return `${count} ${name}${count > 1 ? "s" : ""} ago`;
  }
  return "just now";
}

// 24 -> "8 · 3", with powers as people write them: "2³ · 3".
const RAISED = "⁰¹²³⁴⁵⁶⁷⁸⁹";
export function product(factors) {
  return factors
    .map((q) => {
      for (let p = 2; p <= q; p += 1) {
        if (q % p) continue;
        let exponent = 0;
        for (let rest = q; rest > 1; rest /= p) exponent += 1;
        return exponent === 1 ? `${p}` : `${p}${[...`${exponent}`].map((digit) => RAISED[digit]).join("")}`;
      }
      return `${q}`;
    })
    .join(" · ");
}

// A colour of the style sheet as a canvas needs it: light or dark as it stands now, looked up once.
const probe = document.body.appendChild(h("i", { hidden: true }));
const colours = new Map();
window.addEventListener("theme", () => colours.clear());
export function colour(name) {
  if (!colours.has(name)) {
    probe.style.color = `var(${name})`;
    colours.set(name, getComputedStyle(probe).color);
  }
  return colours.get(name);
}

export const SERIES = [1, 2, 3, 4, 5, 6, 7, 8].map((number) => `var(--series-${number})`);

// A command for a terminal: lines break between its words, not inside them.
export const command = (text) =>
  h(
    "pre",
    { class: "command", tabindex: "0" },
    text.split(" ").flatMap((word, index) => [index ? " " : "", h("span", { text: word })]),
  );

export function announce(text) {
  document.getElementById("announce").textContent = text;
}

// Call `draw(width)` now and whenever the element's width changes.
export function onWidth(element, draw) {
  let last = 0;
  new ResizeObserver(([entry]) => {
    const width = Math.round(entry.contentRect.width);
    if (width && width !== last) {
      last = width;
      draw(width);
    }
  }).observe(element);
}
