// Learning curves: panels that share an axis, the epochs of one run or the training examples of several, whose epochs may
// be of unequal size. With `events` the steps are labelled by the prime powers behind them; with `onChoose` a click or a
// drag chooses a place on the axis, with `onLook` pointing at one does; `mark(place)` shows it.

import { h, onWidth, s, whole } from "../dom.js";

const PANELS = [
  { key: "n_correct", title: "correct GCD", height: 230, step: true, from: 0, format: (v) => whole(v) },
  { key: "accuracy", title: "accuracy, %", height: 130, format: (v) => v.toFixed(1) },
  { key: "loss", title: "training loss", height: 130, from: 0, format: (v) => v.toFixed(3) },
];
const AXES = {
  epoch: { title: "epoch", from: null, format: (v) => whole(v) },
  examples: { title: "training examples", from: 0, format: (v) => (v >= 1e6 ? `${v / 1e6} M` : v >= 1e3 ? `${v / 1e3} k` : `${v}`) },
};
const LEFT = 44;
const RIGHT = 14;

function ticks(low, high, count) {
  const raw = (high - low) / count;
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].map((m) => m * power).find((size) => size >= raw);
  const values = [];
  for (let value = Math.ceil(low / step - 1e-9) * step; value <= high + step * 1e-9; value += step)
    values.push(Number(value.toPrecision(12)));
  return values;
}

function extent(runs, panel) {
  const values = runs.flatMap((run) => run.columns[panel.key] ?? []).filter((v) => v !== null);
  if (!values.length) return null;
  const high = Math.max(...values);
  const low = panel.from ?? Math.min(...values);
  const room = Math.max(high - low, 1e-6) * 0.06;
  return [panel.from ?? Math.max(0, low - room), panel.key === "accuracy" ? Math.min(100, high + room) : high + room];
}

function lastValue(run, panel) {
  const value = run.columns[panel.key]?.at(-1) ?? null;
  return `${run.name} ${value === null ? "–" : panel.format(value)}`.trim();
}

export class Curves {
  // runs: [{name, colour, columns}]; events: prime power -> place on the axis, for a single run.
  constructor(runs, { axis = "epoch", events = null, onChoose = null, onLook = null } = {}) {
    this.runs = runs;
    this.axis = axis;
    this.events = events;
    this.onChoose = onChoose;
    this.onLook = onLook;
    this.place = null;
    this.cursors = [];
    this.element = h("div", { class: "curves" });
    onWidth(this.element, (width) => this.draw(width));
  }

  update(runs, events) {
    this.runs = runs;
    this.events = events;
    if (this.width) this.draw(this.width);
  }

  // What was measured, a row for each evaluation; several runs one below the other.
  rows() {
    const names = Object.keys(this.runs[0].columns);
    const several = this.runs.length > 1;
    const lines = ({ name, columns }) => columns.epoch.map((_, index) => [...(several ? [name] : []), ...names.map((key) => columns[key]?.[index])]);
    return [[...(several ? ["run"] : []), ...names], ...this.runs.flatMap(lines)];
  }

  draw(width) {
    this.width = width;
    this.cursors = [];
    const last = Math.max(1, ...this.runs.map((run) => run.columns[this.axis].at(-1) ?? 1));
    const first = AXES[this.axis].from ?? Math.min(...this.runs.map((run) => run.columns[this.axis][0] ?? 1));
    const inner = width - LEFT - RIGHT;
    this.x = (place) => LEFT + ((place - first) / Math.max(1, last - first)) * inner;
    this.at = (x) => Math.round(first + Math.min(1, Math.max(0, (x - LEFT) / inner)) * (last - first));
    const panels = PANELS.map((panel) => [panel, extent(this.runs, panel)]).filter(([, range]) => range);
    this.element.replaceChildren(
      ...panels.map(([panel, range], index) =>
        this.panel(panel, range, { width, first, last, bottom: index === panels.length - 1 }),
      ),
    );
    if (this.place !== null) this.mark(this.place);
  }

  panel(panel, [low, high], { width, first, last, bottom }) {
    const events = panel.key === "n_correct" ? this.labels() : [];
    const rows = events.length ? Math.max(...events.map(({ row }) => row)) + 1 : 0;
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
      "aria-label": `${panel.title} up to ${AXES[this.axis].title} ${whole(last)}, now ${this.runs.map((run) => lastValue(run, panel)).join("; ")}`,
    });
    for (const value of ticks(low, high, panel.height > 150 ? 5 : 3)) {
      svg.append(
        s("line", { class: "rule-line", x1: LEFT, x2: width - RIGHT, y1: y(value), y2: y(value) }),
        s("text", { class: "tick", x: LEFT - 8, y: y(value) + 4, "text-anchor": "end", text: `${value}` }),
      );
    }
    for (const { place, text, row } of events) {
      svg.append(
        s("line", { class: "event-line", x1: this.x(place), x2: this.x(place), y1: 37 + row * 13, y2: base }),
        s("text", { class: "event-text", x: this.x(place), y: 33 + row * 13, "text-anchor": "middle", text }),
      );
    }
    for (const run of this.runs) svg.append(...this.line(run, panel, y));
    svg.append(s("text", { class: "panel-title", x: 0, y: 14, text: panel.title }));
    if (bottom) {
      const { title, format } = AXES[this.axis];
      for (const value of ticks(first, last, Math.max(2, Math.min(10, width / 90))).filter((v) => Number.isInteger(v))) {
        svg.append(
          s("text", { class: "tick", x: this.x(value), y: base + 18, "text-anchor": "middle", text: format(value) }),
        );
      }
      svg.append(s("text", { class: "tick", x: width - RIGHT, y: base + 32, "text-anchor": "end", text: title }));
    }
    this.cursor(svg, panel, y, base, top);
    return svg;
  }

  line(run, panel, y) {
    const points = run.columns[this.axis]
      .map((place, index) => [place, run.columns[panel.key]?.[index]])
      .filter(([, v]) => v !== null && v !== undefined);
    if (!points.length) return [];
    const path = points
      .map(([place, value], index) => {
        const [px, py] = [this.x(place).toFixed(1), y(value).toFixed(1)];
        return index === 0 ? `M${px} ${py}` : panel.step ? `H${px}V${py}` : `L${px} ${py}`;
      })
      .join("");
    const made = [s("path", { class: "curve", d: path, style: { stroke: run.colour } })];
    if (points.length === 1)
      made.push(s("circle", { cx: this.x(points[0][0]), cy: y(points[0][1]), r: 3, style: { fill: run.colour } }));
    return made;
  }

  // Prime powers by the place at which they were learned, on up to three rows so that they do not run into each other.
  labels() {
    const byPlace = new Map();
    for (const [power, place] of Object.entries(this.events ?? {})) {
      if (power !== "1") byPlace.set(place, [...(byPlace.get(place) ?? []), power]);
    }
    const ends = [-1e9, -1e9, -1e9];
    return [...byPlace]
      .sort(([a], [b]) => a - b)
      .map(([place, powers]) => {
        const text = powers.length > 6 ? `${powers.slice(0, 5).join(" ")} …` : powers.join(" ");
        const half = text.length * 3.8 + 5;
        const free = ends.findIndex((end) => end < this.x(place) - half);
        const row = free === -1 ? 2 : free;
        ends[row] = this.x(place) + half;
        return { place, text, row };
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
        this.onLook(this.place);
      });
    }
    if (!this.onChoose) return;
    svg.classList.add("choosable");
    const choose = (event) => this.onChoose(this.at(event.clientX - svg.getBoundingClientRect().left));
    svg.addEventListener("pointerdown", (event) => {
      svg.setPointerCapture(event.pointerId);
      choose(event);
    });
    svg.addEventListener("pointermove", (event) => event.buttons && choose(event));
  }

  // Which evaluation of a run is meant by a place: that epoch, or the last one after no more examples; -1 if there is none.
  evaluation(run, place) {
    const places = run.columns[this.axis];
    return this.axis === "epoch" ? places.indexOf(place) : places.findLastIndex((other) => other <= place);
  }

  mark(place) {
    this.place = place;
    if (!this.x) return;
    const x = this.x(place);
    for (const { panel, y, base, line, dots, value } of this.cursors) {
      line.style.display = "";
      line.setAttribute("x1", x);
      line.setAttribute("x2", x);
      this.runs.forEach((run, number) => {
        const index = this.evaluation(run, place);
        const measured = run.columns[panel.key]?.[index];
        const there = measured !== null && measured !== undefined;
        dots[number].style.display = there ? "" : "none";
        if (!there) return;
        dots[number].setAttribute("cx", this.x(run.columns[this.axis][index]));
        dots[number].setAttribute("cy", y(measured));
        if (this.runs.length > 1) return;
        const right = x < this.width - 70;
        value.textContent = panel.format(measured);
        value.setAttribute("x", x + (right ? 9 : -9));
        value.setAttribute("y", y(measured) + (y(measured) + 17 > base - 2 ? -10 : 17));
        value.setAttribute("text-anchor", right ? "start" : "end");
      });
    }
  }
}

// A curve the size of a word: [epoch, value] from 0 to `top`.
export function spark(points, top, { width = 110, height = 28 } = {}) {
  if (points.length === 0) return s("svg", { class: "spark", viewBox: `0 0 ${width} ${height}`, "aria-hidden": "true" });
  const last = points[points.length - 1];
  const x = (epoch) => 3 + ((epoch - points[0][0]) / Math.max(1, last[0] - points[0][0])) * (width - 8);
  const y = (value) => height - 3 - (value / top) * (height - 7);
  const path = points
    .map(([epoch, value], index) =>
      index === 0 ? `M${x(epoch).toFixed(1)} ${y(value).toFixed(1)}` : `H${x(epoch).toFixed(1)}V${y(value).toFixed(1)}`,
    )
    .join("");
  return s(
    "svg",
    { class: "spark", viewBox: `0 0 ${width} ${height}`, "aria-hidden": "true" },
    s("path", { class: "spark-area", d: `${path}V${height - 3}H3Z` }),
    s("path", { class: "spark-line", d: path }),
    s("circle", { class: "spark-end", cx: x(last[0]), cy: y(last[1]), r: 2.2 }),
  );
}
