// The certificate by size and order, beside the rules of a run: asked for when it comes into sight and the slider rests.

import { bands } from "../api.js";
import { h, percent, table, whole } from "../dom.js";
import { savedTable } from "../download.js";
import { bandsFigure } from "../figures/bands.js";
import { keptEpochs } from "./switch.js";

const REST = 400;
const MARKS = { yes: ["✓", "holds"], no: ["✗", "does not hold"], wait: ["…", "undecided"] };

export class BandsSection {
  constructor(run, signal) {
    this.run = run;
    this.seen = false;
    this.made = new Map();
    this.body = h("div", { class: "bands", "aria-live": "polite" });
    this.element = h("section", { class: "bands-section" },
      h("h2", { text: "For which pairs the rules hold" }),
      h("p", { class: "measure", text: "The certificate is about the pairs it was made from. Here the model is asked for pairs of other sizes and orders, over all k up to 100 that fit, each equally often. What it has memorised shows." }),
      this.body);
    const watch = new IntersectionObserver(([entry]) => {
      if (!entry.isIntersecting) return;
      this.seen = true;
      watch.disconnect();
      this.show(this.epoch);
    }, { rootMargin: "300px" });
    watch.observe(this.element);
    signal.addEventListener("abort", () => {
      watch.disconnect();
      clearTimeout(this.timer);
    });
  }

  show(epoch, run = this.run) {
    this.run = run;
    this.epoch = epoch;
    clearTimeout(this.timer);
    if (!epoch) return;
    if (!run.checkpoints.includes(epoch)) return this.put(h("p", { class: "hint", text: notKept(run, epoch) }));
    if (this.made.has(epoch)) return this.put(...bandsOf(this.made.get(epoch)));
    this.put(h("p", { class: "hint busy", role: "status", text: `Asking the model of epoch ${epoch} for pairs of other sizes and orders …` }));
    if (this.seen) this.timer = setTimeout(() => this.load(epoch), REST);
  }

  async load(epoch) {
    const report = await bands(this.run.id, epoch).catch(({ message }) => ({ error: message }));
    if (!report.error) this.made.set(epoch, report);
    if (this.epoch !== epoch) return;
    this.put(...(report.error ? [h("p", { class: "problem", text: report.error })] : bandsOf(report)));
  }

  put(...children) {
    this.body.replaceChildren(...children);
  }
}

function notKept(run, epoch) {
  return `Sizes and orders were not judged: the weights of epoch ${epoch} are not kept.${keptEpochs(run)}`;
}

function bandsOf(report) {
  const sign = (mark) => h("span", { class: `band-mark ${mark}`, role: "img", "aria-label": MARKS[mark][1], text: MARKS[mark][0] });
  const rows = report.bands.map((band) => [band.name, sign(band.mark), band.shown, percent(band.accuracy), whole(band.n), band.gcds]);
  return [
    h("p", { class: "band-verdict" }, h("b", { text: report.certified ? "Certified" : "Not certified" }),
      report.certified ? ` on ${report.domain}${report.limits}.` : `: ${report.verdict.replace(/^not certified: /, "")}.`),
    bandsFigure(report),
    h("p", { class: "legend", text: `The dotted line is ${percent(100 * report.wanted, 0)}: from there on the rules hold in a band. Thin lines are 95 % intervals.` }),
    ...savedTable("Bands of size and order", table("Bands of size and order", ["pairs with", "", "fidelity, 95 % interval", "right", "pairs", "k"], rows, { lined: true })),
  ];
}
