// Learning curves: panels that share their epochs. With `events` the steps are labelled by the prime powers behind them;
// with `onEpoch` a click or a drag chooses an epoch, with `onLook` pointing at one does; `mark(epoch)` shows it.

import { h, onWidth, s, whole } from "../dom.js";

const PANELS = [
  { key: "n_correct", title: "correct GCD", height: 230, step: true, from: 0, format: (v) => whole(v) },
  { key: "accuracy", title: "accuracy on random pairs, %", height: 130, format: (v) => v.toFixed(1) },
  { key: "loss", title: "training loss", height: 130, from: 0, format: (v) => v.toFixed(3) },
];
const LEFT = 44;
const RIGHT = 14;

function ticks(low, high, count) {
  const raw = (high - low) / count;
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].map((m) => m * power).find((one) => one >= raw);
  const found = [];
  for (let value = Math.ceil(low / step - 1e-9) * step; value <= high + step * 1e-9; value += step)
    found.push(Number(value.toPrecision(12)));
  return found;
}

function extent(runs, panel) {
  const values = runs.flatMap((run) => run.columns[panel.key] ?? []).filter((v) => v !== null);
  if (!values.length) return null;
  const high = Math.max(...values);
  const low = panel.from ?? Math.min(...values);
  const room = Math.max(high - low, 1e-6) * 0.06;
  return [panel.from ?? Math.max(0, low - room), panel.key === "accuracy" ? Math.min(100, high + room) : high + room];
}

export class Curves {
  // runs: [{name, colour, columns}]; events: prime power -> epoch, for a single run.
  constructor(runs, { events = null, onEpoch = null, onLook = null } = {}) {
    this.runs = runs;
    this.events = events;
    this.onEpoch = onEpoch;
    this.onLook = onLook;
    this.epoch = null;
    this.cursors = [];
    this.element = h("div", { class: "curves" });
    onWidth(this.element, (width) => this.draw(width));
  }

  update(runs, events) {
    this.runs = runs;
    this.events = events;
    if (this.width) this.draw(this.width);
  }

  draw(width) {
    this.width = width;
    this.cursors = [];
    const last = Math.max(1, ...this.runs.map((run) => run.columns.epoch.at(-1) ?? 1));
    const first = Math.min(...this.runs.map((run) => run.columns.epoch[0] ?? 1));
    this.x = (epoch) => LEFT + ((epoch - first) / Math.max(1, last - first)) * (width - LEFT - RIGHT);
    this.at = (x) => Math.round(first + ((x - LEFT) / (width - LEFT - RIGHT)) * (last - first));
    const panels = PANELS.map((panel) => [panel, extent(this.runs, panel)]).filter(([, range]) => range);
    this.element.replaceChildren(
      ...panels.map(([panel, range], index) =>
        this.panel(panel, range, { width, first, last, bottom: index === panels.length - 1 }),
      ),
    );
    if (this.epoch !== null) this.mark(this.epoch);
  }

  panel(panel, [low, high], { width, first, last, bottom }) {
    const events = panel.key === "n_correct" ? this.labels() : [];
    const rows = events.length ? Math.max(...events.map((one) => one.row)) + 1 : 0;
    const top = 26 + rows * 13;
    const height = panel.height + (bottom ? 34 : 8);
    const base = panel.height - 4;
    const y = (value) => base - ((value - low) / (high - low)) * (base - top);
    const svg = s("svg", {
      class: "panel",
      viewBox: `0 0 ${width} ${height}`,
      width,
      height,
      role: "img",
      "aria-label": `${panel.title} over ${last} epochs, now ${this.runs.map((run) => `${run.name ?? ""} ${panel.format(run.columns[panel.key]?.at(-1) ?? 0)}`).join("; ")}`,
    });
    for (const value of ticks(low, high, panel.height > 150 ? 5 : 3)) {
      svg.append(
        s("line", { class: "rule-line", x1: LEFT, x2: width - RIGHT, y1: y(value), y2: y(value) }),
        s("text", { class: "tick", x: LEFT - 8, y: y(value) + 4, "text-anchor": "end", text: `${value}` }),
      );
    }
    for (const { epoch, text, row } of events) {
      svg.append(
        s("line", { class: "event-line", x1: this.x(epoch), x2: this.x(epoch), y1: 37 + row * 13, y2: base }),
        s("text", { class: "event-text", x: this.x(epoch), y: 33 + row * 13, "text-anchor": "middle", text }),
      );
    }
    for (const run of this.runs) svg.append(...this.line(run, panel, y));
    svg.append(s("text", { class: "panel-title", x: 0, y: 14, text: panel.title }));
    if (bottom) {
      for (const value of ticks(first, last, Math.max(2, Math.min(10, width / 90))).filter((v) => Number.isInteger(v))) {
        svg.append(s("text", { class: "tick", x: this.x(value), y: base + 18, "text-anchor": "middle", text: `${value}` }));
      }
      svg.append(s("text", { class: "tick", x: width - RIGHT, y: base + 32, "text-anchor": "end", text: "epoch" }));
    }
    this.cursor(svg, panel, y, base, top);
    return svg;
  }

  line(run, panel, y) {
    const points = run.columns.epoch
      .map((epoch, index) => [epoch, run.columns[panel.key]?.[index]])
      .filter(([, v]) => v !== null && v !== undefined);
    if (!points.length) return [];
    const path = points
      .map(([epoch, value], index) => {
        const [px, py] = [this.x(epoch).toFixed(1), y(value).toFixed(1)];
        return index === 0 ? `M${px} ${py}` : panel.step ? `H${px}V${py}` : `L${px} ${py}`;
      })
      .join("");
    const made = [s("path", { class: "curve", d: path, style: { stroke: run.colour } })];
    if (points.length === 1)
      made.push(s("circle", { cx: this.x(points[0][0]), cy: y(points[0][1]), r: 3, style: { fill: run.colour } }));
    return made;
  }

  // Prime powers by the epoch at which they were learned, on up to three rows so that they do not run into each other.
  labels() {
    const byEpoch = new Map();
    for (const [power, epoch] of Object.entries(this.events ?? {})) {
      if (power !== "1") byEpoch.set(epoch, [...(byEpoch.get(epoch) ?? []), power]);
    }
    const ends = [-1e9, -1e9, -1e9];
    return [...byEpoch]
      .sort((one, other) => one[0] - other[0])
      .map(([epoch, powers]) => {
        const text = powers.length > 6 ? `${powers.slice(0, 5).join(" ")} …` : powers.join(" ");
        const half = text.length * 3.8 + 5;
        const row = ends.findIndex((end) => end < this.x(epoch) - half);
        const place = row === -1 ? 2 : row;
        ends[place] = this.x(epoch) + half;
        return { epoch, text, row: place };
      });
  }

  cursor(svg, panel, y, base, top) {
    const line = s("line", { class: "cursor", y1: top - 6, y2: base, style: { display: "none" } });
    const dots = this.runs.map((run) =>
      s("circle", { class: "cursor-dot", r: 4.5, style: { fill: run.colour, display: "none" } }),
    );
    const value = s("text", { class: "cursor-value" });
    svg.append(line, ...dots, value);
    this.cursors.push({ panel, y, base, line, dots, value });
    if (this.onLook) {
      svg.addEventListener("pointermove", (event) => {
        this.mark(this.at(event.clientX - svg.getBoundingClientRect().left));
        this.onLook(this.epoch);
      });
    }
    if (!this.onEpoch) return;
    svg.classList.add("choosable");
    const choose = (event) => this.onEpoch(this.at(event.clientX - svg.getBoundingClientRect().left));
    svg.addEventListener("pointerdown", (event) => {
      svg.setPointerCapture(event.pointerId);
      choose(event);
    });
    svg.addEventListener("pointermove", (event) => event.buttons && choose(event));
  }

  mark(epoch) {
    this.epoch = epoch;
    if (!this.x) return;
    const x = this.x(epoch);
    for (const { panel, y, base, line, dots, value } of this.cursors) {
      line.style.display = "";
      line.setAttribute("x1", x);
      line.setAttribute("x2", x);
      this.runs.forEach((run, index) => {
        const found = run.columns[panel.key]?.[run.columns.epoch.indexOf(epoch)];
        const there = found !== null && found !== undefined;
        dots[index].style.display = there ? "" : "none";
        if (!there) return;
        dots[index].setAttribute("cx", x);
        dots[index].setAttribute("cy", y(found));
        if (this.runs.length > 1) return;
        const right = x < this.width - 70;
        value.textContent = panel.format(found);
        value.setAttribute("x", x + (right ? 9 : -9));
        value.setAttribute("y", y(found) + (y(found) + 17 > base - 2 ? -10 : 17));
        value.setAttribute("text-anchor", right ? "start" : "end");
      });
    }
  }
}
