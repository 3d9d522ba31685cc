// f(k) for k = 1..100 as a ten by ten grid. Colour says what kind of answer, the bar below how sure it is.

import { Epochs } from "../api.js";
import { answer, h, millions, s, share } from "../dom.js";

const KINDS = { correct: "correct", learning: "being learned", broken: "against the rules", rule: "as the rules say" };

export class Grid {
  // onHover(k or null), onChoose(k)
  constructor({ onHover, onChoose }) {
    this.cells = new Map();
    this.onChoose = onChoose;
    this.element = h("div", {
      class: "grid",
      role: "group",
      "aria-label": "f(k), the usual prediction for pairs with GCD k, for k from 1 to 100",
    });
    for (let k = 1; k <= 100; k += 1) this.element.append(this.cell(k));
    this.element.addEventListener("pointerover", (event) => onHover(this.kOf(event.target)));
    this.element.addEventListener("pointerleave", () => onHover(null));
    this.element.addEventListener("focusin", (event) => onHover(this.kOf(event.target)));
    this.element.addEventListener("focusout", () => onHover(null));
    this.element.addEventListener("click", (event) => this.kOf(event.target) && onChoose(this.kOf(event.target)));
    this.element.addEventListener("keydown", (event) => this.move(event));
  }

  cell(k) {
    const value = h("b", {});
    const bar = h("i", {});
    const element = h(
      "button",
      { type: "button", class: "cell", "data-k": k, tabindex: k === 1 ? "0" : "-1" },
      h("small", { text: `${k}` }),
      value,
      bar,
    );
    this.cells.set(k, { element, value, bar, kind: null });
    return element;
  }

  kOf(target) {
    return Number(target.closest?.(".cell")?.dataset.k) || null;
  }

  // Arrow keys walk over the grid; one cell at a time is in the tab order.
  move(event) {
    const step = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -10, ArrowDown: 10 }[event.key];
    const from = this.kOf(event.target);
    if (!step || !from) return;
    event.preventDefault();
    event.stopPropagation();
    const next = this.cells.get(from + step);
    if (!next) return;
    this.cells.get(from).element.tabIndex = -1;
    next.element.tabIndex = 0;
    next.element.focus();
  }

  rows() {
    const cells = this.data.f.map(({ k, prediction, share: part, right, rule, kind }) => [k, prediction, part, right, rule, KINDS[kind]]);
    return [["k", "prediction", "share", "right", "rule", "kind"], ...cells];
  }

  show(data) {
    this.data = data;
    const entries = new Map(data.f.map((entry) => [entry.k, entry]));
    for (const [k, cell] of this.cells) {
      const entry = entries.get(k);
      const kind = entry ? entry.kind : "untested";
      if (cell.kind !== kind) {
        cell.element.className = `cell ${kind}${cell.kind && kind === "correct" ? " fresh" : ""}`;
        cell.kind = kind;
      }
      cell.value.textContent = entry ? answer(entry.prediction) : "·";
      cell.bar.style.setProperty("--share", entry ? entry.share.toFixed(3) : "0");
      cell.element.setAttribute(
        "aria-label",
        entry
          ? `GCD ${k}: predicted ${answer(entry.prediction)} for ${share(entry.share)} of the pairs; ${KINDS[kind]}`
          : `GCD ${k}: not tested`,
      );
    }
  }

  // Highlight a k and the k that get the same answer.
  mark(hovered, chosen, data) {
    const focus = hovered ?? chosen;
    const prediction = data?.f.find(({ k }) => k === focus)?.prediction;
    const same = focus && prediction !== null ? data?.f.filter((entry) => entry.prediction === prediction) : [];
    const matching = new Set(same?.map(({ k }) => k));
    for (const [k, cell] of this.cells) {
      cell.element.classList.toggle("hovered", k === hovered);
      cell.element.classList.toggle("chosen", k === chosen);
      cell.element.classList.toggle("matching", k !== focus && matching.has(k));
    }
  }
}

export const gridLegend = () =>
  h(
    "p",
    { class: "legend" },
    ...Object.entries(KINDS).map(([kind, text]) => h("span", {}, h("i", { class: `swatch ${kind}` }), text)),
  );

// Which of the k = 1..100 a run knows at an evaluation: a ten by ten grid the size of a stamp, to be set beside others. What
// is correct is in the run's metrics and drawn at once; the kind of every cell comes with the explanation of that epoch.
export class Known {
  constructor(run) {
    this.run = run;
    this.epochs = new Epochs(run.id);
    this.wanted = null;
    this.loading = false;
    this.cells = [];
    const svg = s("svg", { viewBox: "0 0 100 100", class: "known-grid", role: "img" });
    for (let k = 1; k <= 100; k += 1) {
      const [x, y] = [((k - 1) % 10) * 10 + 0.5, Math.floor((k - 1) / 10) * 10 + 0.5];
      const cell = s("rect", { x, y, width: 9, height: 9, rx: 1.5 }, s("title", { text: `${k}` }));
      this.cells.push(cell);
      svg.append(cell);
    }
    this.svg = svg;
    this.count = h("span", {});
    this.element = h("div", { class: "known" }, svg, this.count);
    this.show(run.columns.epoch.length - 1);
  }

  // The evaluation of this index; -1 for none.
  show(index) {
    this.index = index;
    const { epoch, examples } = this.run.columns;
    const details = index < 0 ? null : this.epochs.now(epoch[index]);
    const known = this.run.D[index] ?? [];
    const kinds = new Map(details ? details.f.map(({ k, kind }) => [k, kind]) : known.map((k) => [k, "correct"]));
    this.cells.forEach((cell, place) => cell.setAttribute("class", kinds.get(place + 1) ?? ""));
    this.count.textContent = index < 0 ? "nothing evaluated yet" : `${known.length} after ${millions(examples[index])}`;
    this.svg.setAttribute("aria-label", `${this.run.name}: correct are ${known.join(", ") || "none"}`);
    if (index >= 0 && !details) this.load(epoch[index]);
  }

  // One explanation at a time: of those asked for meanwhile only the last is fetched.
  async load(epoch) {
    this.wanted = epoch;
    if (this.loading) return;
    this.loading = true;
    while (this.wanted !== null) {
      const next = this.wanted;
      this.wanted = null;
      const loaded = await this.epochs.get(next).catch(() => null);
      if (loaded && this.run.columns.epoch[this.index] === next) this.show(this.index);
    }
    this.loading = false;
  }
}
