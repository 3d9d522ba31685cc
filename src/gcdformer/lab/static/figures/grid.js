// f(k) for k = 1..100 as a ten by ten grid. Colour says what kind of answer, the bar below how sure it is.

import { answer, h, share } from "../dom.js";

const KINDS = { correct: "correct", learning: "being learned", broken: "against the rules", rule: "as the rules say" };

export class Grid {
  // onHover(k or null), onChoose(k)
  constructor({ onHover, onChoose }) {
    this.cells = new Map();
    this.onChoose = onChoose;
    this.element = h("div", {
      class: "grid",
      role: "group",
      "aria-label": "f(k), the usual answer for pairs with GCD k, for k from 1 to 100",
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

  show(data) {
    const tested = new Map(data.f.map((one) => [one.k, one]));
    for (const [k, cell] of this.cells) {
      const one = tested.get(k);
      const kind = one ? one.kind : "untested";
      if (cell.kind !== kind) {
        cell.element.className = `cell ${kind}${cell.kind && kind === "correct" ? " fresh" : ""}`;
        cell.kind = kind;
      }
      cell.value.textContent = one ? answer(one.prediction) : "·";
      cell.bar.style.setProperty("--share", one ? one.share.toFixed(3) : "0");
      cell.element.setAttribute(
        "aria-label",
        one
          ? `GCD ${k}: answered ${answer(one.prediction)} for ${share(one.share)} of the pairs; ${KINDS[kind]}`
          : `GCD ${k}: not tested`,
      );
    }
  }

  // Highlight a k and the k that get the same answer.
  mark(hovered, chosen, data) {
    const focus = hovered ?? chosen;
    const prediction = data?.f.find((one) => one.k === focus)?.prediction;
    const alike = new Set(
      focus && prediction !== null ? data?.f.filter((one) => one.prediction === prediction).map((one) => one.k) : [],
    );
    for (const [k, cell] of this.cells) {
      cell.element.classList.toggle("hovered", k === hovered);
      cell.element.classList.toggle("chosen", k === chosen);
      cell.element.classList.toggle("alike", k !== focus && alike.has(k));
    }
  }
}

export const gridLegend = () =>
  h(
    "p",
    { class: "legend" },
    ...Object.entries(KINDS).map(([kind, text]) => h("span", {}, h("i", { class: `swatch ${kind}` }), text)),
  );
