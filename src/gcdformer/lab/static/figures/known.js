// Which of the k = 1..100 a run knows at an evaluation: a ten by ten grid the size of a stamp, to be set beside others. What
// is correct is in the run's metrics and drawn at once; the kind of every cell comes with the explanation of that epoch.

import { Epochs } from "../api.js";
import { h, millions, s } from "../dom.js";

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
      const found = await this.epochs.get(next).catch(() => null);
      if (found && this.run.columns.epoch[this.index] === next) this.show(this.index);
    }
    this.loading = false;
  }
}
