// An element of the page as an SVG that stands by itself: boxes, texts, SVG and canvases, with their colours written out.
// What a style sheet draws by other means (shadows, pseudo-elements) is left out. Knows no figure and no data.

import { h, s } from "../dom.js";

const MARGIN = 12;
const PAINT = ["fill", "stroke"];
const KEPT = ["stroke-width", "stroke-dasharray", "stroke-linejoin", "opacity", "paint-order", "font-family", "font-size", "font-weight", "text-anchor"];
const pixel = h("canvas", { width: 1, height: 1 }).getContext("2d", { willReadFrequently: true });

// {svg, width, height}; the SVG as text.
export function pictureOf(element, title) {
  const box = element.getBoundingClientRect();
  const origin = { x: box.left - element.scrollLeft - MARGIN, y: box.top - element.scrollTop - MARGIN };
  const content = s("g", {}, [...shapes(element, origin)]);
  const { width, height } = extent(content);
  const ground = getComputedStyle(document.body).backgroundColor;
  const root = s("svg", { viewBox: `0 0 ${width} ${height}`, width, height }, s("title", { text: title }),
    s("rect", { width, height, ...paint("fill", ground) }), content);
  return { svg: new XMLSerializer().serializeToString(root), width, height };
}

// How large a picture has to be for this, with a margin: measured in the page, unseen.
function extent(content) {
  const probe = document.body.appendChild(s("svg", { class: "unseen" }, content));
  const { x, y, width, height } = content.getBBox();
  probe.remove();
  return { width: Math.ceil(x + width + MARGIN), height: Math.ceil(y + height + MARGIN) };
}

// A colour of the page, which may be a mixture, as every program reads it.
function paint(name, colour) {
  if (colour === "none") return { [name]: "none" };
  pixel.clearRect(0, 0, 1, 1);
  pixel.fillStyle = colour;
  pixel.fillRect(0, 0, 1, 1);
  const [red, green, blue, alpha] = pixel.getImageData(0, 0, 1, 1).data;
  const hex = [red, green, blue].map((part) => part.toString(16).padStart(2, "0")).join("");
  return { [name]: `#${hex}`, [`${name}-opacity`]: alpha < 255 ? (alpha / 255).toFixed(3) : null };
}

function* shapes(node, origin) {
  if (node instanceof Text) yield* words(node, origin);
  if (!(node instanceof Element) || !node.checkVisibility() || node.matches(".unseen")) return;
  const [style, box] = [getComputedStyle(node), node.getBoundingClientRect()];
  const place = { x: round(box.left - origin.x), y: round(box.top - origin.y), width: round(box.width), height: round(box.height) };
  yield* ground(style, place);
  if (node instanceof SVGSVGElement) yield inner(node, place);
  else if (node instanceof HTMLInputElement && node.type === "text") yield typed(node.value, style, place);
  else if (node instanceof HTMLCanvasElement) yield s("g", { transform: `translate(${place.x} ${place.y})` }, drawn(node));
  else for (const child of node.childNodes) yield* shapes(child, origin);
}

const round = (value) => Number(value.toFixed(2));

// The background and the border of an element.
function* ground(style, place) {
  const fill = paint("fill", style.backgroundColor);
  const border = Number.parseFloat(style.borderTopWidth);
  if (fill["fill-opacity"] === "0.000" && !border) return;
  const stroke = border ? { ...paint("stroke", style.borderTopColor), "stroke-width": border } : {};
  yield s("rect", { ...place, rx: Number.parseFloat(style.borderTopLeftRadius) || null, ...fill, ...stroke, opacity: style.opacity === "1" ? null : style.opacity });
}

// Each word by itself, where the browser has put it.
function* words(node, origin) {
  const style = getComputedStyle(node.parentElement);
  pixel.font = style.font;
  const range = document.createRange();
  for (const { 0: word, index } of node.data.matchAll(/\S+/g)) {
    range.setStart(node, index);
    range.setEnd(node, index + word.length);
    const box = range.getBoundingClientRect();
    const { fontBoundingBoxAscent: ascent, fontBoundingBoxDescent: descent } = pixel.measureText(word);
    const y = box.top + (box.height * ascent) / (ascent + descent);
    yield s("text", { x: round(box.left - origin.x), y: round(y - origin.y), "font-family": style.fontFamily, "font-size": style.fontSize,
      "font-weight": style.fontWeight, ...paint("fill", style.color), text: word });
  }
}

// What stands in a field, at its left or in its middle.
function typed(text, style, { x, y, width, height }) {
  pixel.font = style.font;
  const { fontBoundingBoxAscent: ascent, fontBoundingBoxDescent: descent } = pixel.measureText(text);
  const place = style.textAlign === "center" ? { x: round(x + width / 2), "text-anchor": "middle" } : { x: round(x + Number.parseFloat(style.paddingLeft)) };
  return s("text", { ...place, y: round(y + (height + ascent - descent) / 2), "font-family": style.fontFamily, "font-size": style.fontSize,
    "font-weight": style.fontWeight, ...paint("fill", style.color), text });
}

// A copy of an SVG whose elements have as attributes what the style sheet says about them.
function inner(svg, place) {
  const copy = svg.cloneNode(true);
  const copies = [copy, ...copy.querySelectorAll("*")];
  [svg, ...svg.querySelectorAll("*")].forEach((element, index) => {
    const [style, own] = [getComputedStyle(element), copies[index]];
    if (style.display === "none" && element.tagName !== "title") return own.remove();
    const values = Object.assign(Object.fromEntries(KEPT.map((name) => [name, style.getPropertyValue(name)])), ...PAINT.map((name) => paint(name, style[name])));
    own.removeAttribute("class");
    own.removeAttribute("style");
    if (element.tagName !== "title") Object.entries(values).forEach(([name, value]) => value && own.setAttribute(name, value));
  });
  Object.entries({ ...place, overflow: "visible" }).forEach(([name, value]) => copy.setAttribute(name, value));
  return copy;
}

// A canvas is drawn once more; whoever drew it has left its `draw(context)` there.
function drawn(canvas) {
  const context = new SvgContext();
  canvas.drawOn(context);
  return context.elements;
}

// What the figures use of a canvas's context, as elements of an SVG.
class SvgContext {
  elements = [];
  globalAlpha = 1;
  lineWidth = 1;
  textAlign = "left";

  fillRect(x, y, width, height) {
    this.add("rect", { x: round(x), y: round(y), width: round(width), height: round(height), ...this.filled() });
  }

  strokeRect(x, y, width, height) {
    this.add("rect", { x: round(x), y: round(y), width: round(width), height: round(height), fill: "none", ...this.stroked() });
  }

  fillText(text, x, y) {
    pixel.font = this.font;
    const [size, family] = pixel.font.match(/^(?:.* )?([\d.]+px) (.*)$/).slice(1);
    const anchor = { left: "start", center: "middle", right: "end" }[this.textAlign];
    this.add("text", { x: round(x), y: round(y), "font-size": size, "font-family": family, "text-anchor": anchor, ...this.filled(), text });
  }

  beginPath() {
    this.path = "";
  }

  moveTo(x, y) {
    this.path += `M${round(x)} ${round(y)}`;
  }

  lineTo(x, y) {
    this.path += `L${round(x)} ${round(y)}`;
  }

  // A whole circle, which is all that is used.
  arc(x, y, radius) {
    const half = (to) => `A${radius} ${radius} 0 0 1 ${round(x + to)} ${round(y)}`;
    this.path += `M${round(x - radius)} ${round(y)}${half(radius)}${half(-radius)}`;
  }

  stroke() {
    this.add("path", { d: this.path, fill: "none", ...this.stroked() });
  }

  filled() {
    return paint("fill", this.fillStyle);
  }

  stroked() {
    return { ...paint("stroke", this.strokeStyle), "stroke-width": this.lineWidth };
  }

  add(tag, attributes) {
    this.elements.push(s(tag, { ...attributes, opacity: this.globalAlpha < 1 ? this.globalAlpha.toFixed(3) : null }));
  }
}
