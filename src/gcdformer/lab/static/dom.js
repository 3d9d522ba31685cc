// Elements, numbers and words: the little that the views share. Text is only ever set as text, never parsed as HTML.

const SVG = "http://www.w3.org/2000/svg";

function build(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "style") Object.entries(value).forEach(([key, part]) => element.style.setProperty(key, part));
    else if (name === "text") element.textContent = value;
    else if (name === "value") element.value = value;
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

export const h = (tag, attributes, ...children) => build(document.createElement(tag), attributes, children);
export const s = (tag, attributes, ...children) => build(document.createElementNS(SVG, tag), attributes, children);

export const percent = (value, digits = 1) =>
  value === null || value === undefined ? "–" : `${value.toFixed(digits)}\u00a0%`;

// A share of 0..1 as percent; only what is exactly none of them is 0 %.
export function share(value) {
  if (value >= 0.9995) return "100\u00a0%";
  if (value < 0.0005) return value > 0 ? "<\u00a00.1\u00a0%" : "0\u00a0%";
  return `${(100 * value).toFixed(value > 0.985 || value < 0.015 ? 1 : 0)}\u00a0%`;
}

export const whole = (value) => value.toLocaleString("en-US");
export const millions = (count) =>
  count >= 1e6 ? `${(count / 1e6).toFixed(2)}\u00a0M` : count >= 1e3 ? `${Math.round(count / 1e3)}\u00a0k` : `${count}`;
export const answer = (value) => (value === null ? "?" : `${value}`);
export const list = (values) => values.join(", ");
export const capital = (text) => `${text[0].toUpperCase()}${text.slice(1)}`;
export const plural = (count, noun) => `${whole(count)} ${noun}${count === 1 ? "" : "s"}`;

export function minutes(seconds) {
  if (seconds < 90) return `${Math.round(seconds)}\u00a0s`;
  if (seconds >= 5400) return `${(seconds / 3600).toFixed(1)}\u00a0h`;
  return `${(seconds / 60).toFixed(seconds < 600 ? 1 : 0)}\u00a0min`;
}

const UNITS = { day: 86400, hour: 3600, minute: 60 };
export function ago(timestamp) {
  const seconds = Math.max(0, Date.now() / 1000 - timestamp);
  const unit = Object.keys(UNITS).find((name) => seconds >= UNITS[name]);
  return unit ? `${plural(Math.floor(seconds / UNITS[unit]), unit)} ago` : "just now";
}

// [prime, exponent] of each prime that divides n.
export function factors(n) {
  const powers = [];
  let rest = n;
  for (let p = 2; p * p <= rest; p += 1) {
    let exponent = 0;
    for (; rest % p === 0; rest /= p) exponent += 1;
    if (exponent) powers.push([p, exponent]);
  }
  if (rest > 1) powers.push([rest, 1]);
  return powers;
}

// 24 -> "2³ · 3".
const raised = (exponent) => [...`${exponent}`].map((digit) => "⁰¹²³⁴⁵⁶⁷⁸⁹"[digit]).join("");
export const product = (n) => factors(n).map(([p, exponent]) => (exponent > 1 ? `${p}${raised(exponent)}` : `${p}`)).join(" · ");

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
export const swatch = (index) => h("i", { class: "line", style: { background: SERIES[index] } });

// The opening of a view: where it is, its heading, its first sentences.
export const hero = ({ crumbs = null, title, lede = null }, ...more) =>
  h("div", { class: "hero" }, crumbs && h("p", { class: "crumbs" }, crumbs), h("h1", {}, title), lede && h("p", { class: "lede" }, lede), more);

export const section = (kind, title, ...children) => h("section", { class: kind }, h("h2", { text: title }), children);

// A table that scrolls by itself where it is too wide; cells are texts or elements, the first of a lined row is its head.
export function table(label, heads, rows, { lined = false } = {}) {
  const cell = (value, index) => {
    const kind = lined && index === 0 ? "th" : "td";
    return h(kind, { scope: kind === "th" ? "row" : null }, value instanceof Node ? value : `${value}`);
  };
  const head = (value) => (value === "" ? h("td", {}) : h("th", { scope: "col" }, value));
  return h(
    "div",
    { class: "scroll", tabindex: "0", role: "region", "aria-label": label },
    h("table", { class: `figures${lined ? " lined" : ""}` },
      h("thead", {}, h("tr", {}, heads.map(head))),
      h("tbody", {}, rows.map((row) => h("tr", {}, row.map(cell))))),
  );
}

// A share as a bar with its name and number.
export const bar = (name, part, kind) =>
  h("div", { class: "bar-row" },
    h("span", { class: "bar-name", text: name }),
    h("span", { class: "bar" }, h("i", { class: kind, style: { "--share": part.toFixed(4) } })),
    h("span", { class: "bar-share", text: share(part) }));

// A command for a terminal: lines break between its words, not inside them.
export const command = (text) =>
  h("pre", { class: "command", tabindex: "0" }, text.split(" ").flatMap((word, index) => [index ? " " : "", h("span", { text: word })]));

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
