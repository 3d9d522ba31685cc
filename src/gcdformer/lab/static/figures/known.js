// Which of the k = 1..100 a run knows at an epoch: a ten by ten grid the size of a stamp, to be set beside others.

import { h, s } from "../dom.js";

export class Known {
  constructor(run) {
    this.run = run;
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
    this.show(null);
  }

  // An epoch beyond the last shows the last.
  show(epoch) {
    const epochs = this.run.columns.epoch;
    const found = epoch === null ? -1 : epochs.indexOf(epoch);
    const at = found < 0 ? epochs.length - 1 : found;
    const known = new Set(this.run.D?.[at] ?? []);
    const learning = new Set(this.run.being_learned?.[at] ?? []);
    this.cells.forEach((cell, index) =>
      cell.setAttribute("class", known.has(index + 1) ? "correct" : learning.has(index + 1) ? "learning" : ""),
    );
    this.count.textContent = at < 0 ? "nothing evaluated yet" : `${known.size} at epoch ${epochs[at]}`;
    this.svg.setAttribute("aria-label", `${this.run.name}: correct are ${[...known].join(", ") || "none"}`);
  }
}
