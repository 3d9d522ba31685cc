// A run: everything on the page is driven by the epoch slider and by the k in focus.

import { Epochs, oneRun, repeat } from "../api.js";
import { capital, command, h, hero, list, section } from "../dom.js";
import { csvButton } from "../download.js";
import { Curves } from "../figures/curves.js";
import { Grid, gridLegend } from "../figures/grid.js";
import { Heat } from "../figures/heat.js";
import { History, historyLegend } from "../figures/history.js";
import { Sieve } from "../figures/sieve.js";
import { integer, joinIds, link, update } from "../route.js";
import { sharedFigure } from "../share.js";
import { BandsSection } from "./bands.js";
import { Player } from "./player.js";
import { PriorSwitch } from "./switch.js";
import {
  certificate, classesTable, counterexamples, decidedNote, describe, detail, facts, knownFormula, lede, otherLede, rulesList, runTitle,
  sentence, verdictBadge,
} from "./words.js";

const POLL = 2000;
const AHEAD = 20;

export async function runView(place, { id, params }, context, signal) {
  let { body: run, tag } = await oneRun(id);
  if (!run.columns.epoch.length) return waiting(place, run, signal);
  if (!run.has_gcd) return otherTask(place, run, signal);
  const page = new RunPage(place, run, params.get("prior"), signal);
  const last = run.columns.epoch.length;
  page.chosen = integer(params, "k");
  await page.go(Math.min(Math.max(integer(params, "epoch") ?? last, 1), last), { write: false });
  follow(id, signal, (answer) => {
    if (answer.tag === tag) return;
    tag = answer.tag;
    page.grow(answer.body);
  });
}

// Look at the run again and again while the view is shown.
const follow = (id, signal, look) =>
  repeat(async () => {
    const answer = await oneRun(id).catch(() => null);
    if (answer) look(answer);
  }, POLL, signal);

// A run of the ledger has the tables of its last epoch only: nothing to slide through, no model to ask.
const isRecorded = (run) => "last" in run;
const series = (run) => [{ name: "", colour: "var(--series-1)", columns: run.columns }];
const crumbs = (run) => [...(isRecorded(run) ? papers(run) : [h("a", { href: link("runs"), text: "Runs" })]), ` / ${describe(run)}`];
const papers = ({ behind }) =>
  [{ id: null, number: "Paper" }, ...behind].flatMap(({ id, number }, index) => [index > 1 ? ", " : index ? " / " : "", h("a", { href: link("paper", id), text: number })]);
const repeatSection = (run) =>
  section("plain", "How to repeat it", command(run.repeat),
    h("details", {}, h("summary", { text: "the full configuration" }), h("pre", { tabindex: "0", text: run.config })));

export class RunPage {
  constructor(place, run, prior, signal) {
    this.run = run;
    this.epochs = new Epochs(run.id);
    this.hovered = null;
    this.chosen = null;
    this.data = null;
    const focus = { onHover: (k) => this.hover(k), onChoose: (k) => this.choose(k) };
    this.player = new Player(run, { onEpoch: (epoch) => this.go(epoch), ready: (epoch) => this.epochs.get(epoch) });
    this.prior = new PriorSwitch(run, prior, { onChoose: (name) => this.decide(name), onMade: () => this.redecide() }, signal);
    this.curves = new Curves(series(run), {
      events: run.timeline.prime_powers, onChoose: isRecorded(run) ? null : (epoch) => this.seek(epoch) });
    this.grid = new Grid(focus);
    this.heat = new Heat(focus);
    this.sieve = new Sieve(focus);
    this.bands = new BandsSection(run, signal);
    this.history = new History(run, { onEpoch: (epoch) => this.seek(epoch), onHover: (k) => this.hover(k) });
    const part = (tag) => (name) => [name, h(tag, { class: name })];
    this.parts = Object.fromEntries([
      ...["lede", "form", "formula", "grokked", "decided"].map(part("p")),
      ...["detail", "rules", "certificate", "counter", "events", "badge", "facts"].map(part("div")),
    ]);
    place.append(...this.layout());
    this.drawEvents();
    const redraw = () => {
      this.heat.draw();
      this.history.paint();
    };
    window.addEventListener("theme", redraw, { signal });
    window.addEventListener("keydown", (event) => this.key(event), { signal });
    signal.addEventListener("abort", () => this.player.stop());
  }

  layout() {
    const { run, parts } = this;
    const canAsk = run.checkpoints.length > 0;
    const recorded = isRecorded(run);
    const canCompare = !run.example && !recorded;
    const actions = h("p", { class: "actions" },
      canAsk && h("a", { class: "button", href: link("ask", run.id), text: "Ask this model" }),
      !recorded && h("a", { class: "button quiet", href: link("mechanism", run.id), text: "Where its divisors live" }),
      canCompare && h("a", { class: "button quiet", href: link("runs", null, { pick: joinIds([run.id]) }), text: "Compare with others" }));
    return [
      hero({ crumbs: crumbs(run), title: runTitle(run) },
        h("div", { class: "opening" }, h("div", {}, parts.badge, parts.lede, actions), parts.facts)),
      ...(recorded ? [] : [this.player.element, this.prior.element]),
      h("section", { class: "wide" },
        h("div", { class: "side" },
          h("h2", { text: "It learns in steps" }),
          h("p", { text: "Nothing happens for a while, then the count of correct GCD jumps: the model has learned a new prime power, and at once all its products with what it knew. Labels name the prime power behind each step." }),
          recorded ? null : h("p", { class: "hint", text: "Click or drag in a curve to go to an epoch." })),
        h("figure", {}, sharedFigure("curves", `Learning curves of ${run.name}`, 640, this.curves))),
      h("section", { class: "pair three" },
        h("div", { class: "answers" },
          h("h2", { text: "What it predicts" }),
          h("p", { text: "One cell for each GCD k from 1 to 100, with f(k), the usual prediction for pairs whose GCD is k. The line below shows how sure it is: full if every pair gets that prediction." }),
          sharedFigure("grid", `What ${run.name} predicts`, 720, this.grid, gridLegend(), parts.decided)),
        parts.detail,
        h("div", { class: "knows" },
          h("h2", { text: "What it knows" }),
          parts.formula,
          parts.grokked,
          h("p", { text: "Powers of each prime; a cell fills as more of its pairs are predicted correctly." }),
          this.sieve.element,
          csvButton(`What ${run.name} knows`, () => this.sieve.rows()))),
      h("section", { class: "pair" },
        h("div", {},
          h("h2", { text: "True against predicted" }),
          h("p", { text: "Correct predictions lie on the diagonal. All else falls on a few rows: the elements of D, each collecting its multiples. The top row holds predictions above 100 and unreadable ones." }),
          sharedFigure("heat", `True against predicted, ${run.name}`, 760, this.heat)),
        h("div", { class: "rules-card" },
          h("h2", { text: "The rules" }),
          parts.form,
          parts.rules,
          h("h3", { text: "How well they explain it" }),
          h("p", { text: "Fidelity is the share of test pairs on which the model predicts what the rules say." }),
          parts.certificate,
          parts.counter)),
      recorded ? "" : this.bands.element,
      h("section", { class: "wide with-events" },
        h("div", { class: "side" },
          h("h2", { text: "How it was learned" }),
          h("p", { text: "A row for each k, a column for each epoch. Rows that start together were brought by one prime power; in the list an arrow leads from it to what it brought." })),
        h("figure", {}, sharedFigure("history", `How ${run.name} was learned`, 600, this.history, historyLegend(run))),
        parts.events),
      repeatSection(run),
    ];
  }

  // Go to an epoch: at once if its tables are here, else as soon as they are.
  async go(epoch, { write = true } = {}) {
    this.epoch = epoch;
    this.player.show(epoch);
    this.curves.mark(epoch);
    this.history.mark(epoch, this.hovered ?? this.chosen);
    const last = this.run.columns.epoch.length;
    if (write) update({ epoch: epoch === last ? null : epoch });
    const data = this.epochs.now(epoch) ?? (await this.epochs.get(epoch));
    if (this.epoch !== epoch) return;
    const began = performance.now();
    this.recorded = data;
    this.show(this.prior.show(epoch) ?? data);
    this.bands.show(epoch);
    performance.measure("redraw", { start: began });
    if (isRecorded(this.run)) return;
    const near = Array.from({ length: AHEAD }, (_, i) => [epoch + 1 + i, epoch - 1 - i]).flat();
    this.epochs.ahead(near.filter((other) => other >= 1 && other <= last));
  }

  // Show the epoch under the prior that is chosen, or as it was recorded until that is here.
  redecide(run = this.run) {
    this.show(this.prior.show(this.epoch, run) ?? this.recorded);
  }

  decide(prior) {
    update({ prior });
    this.redecide();
  }

  seek(epoch) {
    if (isRecorded(this.run)) return;
    this.player.stop();
    const next = Math.min(Math.max(epoch, 1), this.run.columns.epoch.length);
    if (next !== this.epoch) this.go(next);
  }

  show(data) {
    this.data = data;
    const { parts, run } = this;
    const grokked = data.grokked;
    this.grid.show(data);
    this.heat.data = data;
    this.sieve.show(data);
    parts.lede.replaceChildren(...lede(run, data));
    parts.badge.replaceChildren(verdictBadge(data), run.live ? h("span", { class: "badge live", text: "training now" }) : "");
    parts.facts.replaceChildren(...facts(data));
    parts.formula.replaceChildren(...knownFormula(data));
    parts.grokked.textContent = grokked.length
      ? `Outlined: ${list(grokked)} ${grokked.length > 1 ? "do" : "does"} not divide ${run.base}; grokked.`
      : "";
    parts.form.replaceChildren("Form ", h("b", { text: data.form }), `: ${data.form_says}. ${capital(data.why)}.`);
    parts.decided.textContent = decidedNote(run, data);
    parts.rules.replaceChildren(rulesList(data));
    parts.certificate.replaceChildren(certificate(data));
    parts.counter.replaceChildren(...[classesTable(data), isRecorded(run) ? null : counterexamples(run, data)].filter(Boolean));
    for (const item of parts.events.querySelectorAll("button"))
      item.setAttribute("aria-current", `${Number(item.dataset.epoch) === data.epoch}`);
    this.mark();
  }

  hover(k) {
    if (k === this.hovered) return;
    this.hovered = k;
    this.mark();
  }

  choose(k) {
    this.chosen = this.chosen === k ? null : k;
    update({ k: this.chosen });
    this.mark();
  }

  mark() {
    if (!this.data) return;
    const { hovered, chosen, data } = this;
    this.grid.mark(hovered, chosen, data);
    this.heat.mark(hovered, chosen);
    this.sieve.mark(hovered, chosen);
    this.history.mark(this.epoch, hovered ?? chosen);
    this.parts.detail.replaceChildren(...detail(this.run, data, hovered ?? chosen).filter(Boolean));
  }

  // New epochs of a run in training; stay at the end if that is where we are.
  grow(run) {
    const atEnd = this.epoch === this.run.columns.epoch.length;
    const shrunk = run.columns.epoch.length < this.run.columns.epoch.length;
    if (shrunk) this.epochs = new Epochs(run.id);
    this.run = run;
    this.player.update(run);
    this.curves.update(series(run), run.timeline.prime_powers);
    this.history.update(run);
    this.drawEvents();
    if (atEnd || shrunk) this.go(run.columns.epoch.length, { write: false });
    else if (this.data) this.redecide(run);
    this.bands.show(this.epoch, run);
  }

  drawEvents() {
    const words = (step) => [h("b", { text: `epoch ${step.epoch}` }), ` ${sentence(step)}`];
    const item = (step) =>
      h("li", {}, isRecorded(this.run)
        ? words(step)
        : h("button", { type: "button", "data-epoch": step.epoch, onclick: () => this.seek(step.epoch) }, words(step)));
    const newestFirst = [...this.run.timeline.steps].reverse();
    this.parts.events.replaceChildren(
      h("ol", { class: "event-list", reversed: true, tabindex: "0", "aria-label": "Changes of D, newest first" }, newestFirst.map(item)),
    );
  }

  key(event) {
    if (event.altKey || event.ctrlKey || event.metaKey || event.target.closest("input, select, textarea, [contenteditable]"))
      return;
    const onButton = event.target.closest("button, a, summary");
    if (event.key === " " && !onButton && !isRecorded(this.run)) this.player.toggle();
    else if (event.key === "ArrowRight") this.seek(this.epoch + 1);
    else if (event.key === "ArrowLeft") this.seek(this.epoch - 1);
    else if (event.key === "Escape" && this.chosen) this.choose(this.chosen);
    else return;
    event.preventDefault();
  }
}

export function otherTask(place, run, signal) {
  const curves = new Curves(series(run));
  place.append(
    hero({ crumbs: crumbs(run), title: run.name, lede: otherLede(run) }),
    section("plain", "Learning curves", curves.element),
    repeatSection(run),
  );
  if (!isRecorded(run)) follow(run.id, signal, ({ body }) => curves.update(series(body), null));
}

// No epoch yet: look again until there is one.
function waiting(place, run, signal) {
  const status = run.live
    ? "Training has begun; the first evaluation is not there yet. This page follows by itself."
    : "No epoch of this run has been evaluated.";
  place.append(hero({ crumbs: crumbs(run), title: run.name, lede: status }), repeatSection(run));
  follow(run.id, signal, ({ body }) => body.columns.epoch.length && window.dispatchEvent(new Event("hashchange")));
}
