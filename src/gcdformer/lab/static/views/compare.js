// Several runs in one picture: their curves, their last evaluation, and when each learned each prime power.

import { oneRun, repeat } from "../api.js";
import { h, hero, millions, minutes, percent, section, SERIES, swatch, table, whole } from "../dom.js";
import { downloadButtons, savedTable } from "../download.js";
import { Curves } from "../figures/curves.js";
import { Known } from "../figures/grid.js";
import { link, splitIds } from "../route.js";

const MOST = 8;
const POLL = 4000;

export async function compareView(place, { params }, context, signal) {
  const ids = [...new Set(splitIds(params.get("runs")))].slice(0, MOST);
  if (!ids.length) {
    const toList = h("a", { href: link("runs"), text: "list" });
    place.append(hero({ title: "Compare", lede: ["Nothing is chosen: tick some runs in the ", toList, "."] }));
    return;
  }
  const { runs, failed } = await load(ids);
  if (!runs.length) throw Object.assign(new Error(failed.join("; ")), { status: 404 });
  const series = () => runs.map((run, index) => ({ name: run.name, colour: SERIES[index], columns: run.columns }));
  const values = runs.map(() => h("small", { class: "at-epoch" }));
  const knowns = runs.map((run) => (run.has_gcd ? new Known(run) : null));
  const look = (examples) =>
    runs.forEach((run, index) => {
      const at = curves.evaluation(run, examples);
      knowns[index]?.show(at);
      values[index].textContent = at < 0 ? "nothing evaluated yet" : valuesAt(run, at);
    });
  const curves = new Curves(series(), { axis: "examples", onLook: look });
  const tables = h("div", {}, tablesOf(runs));
  place.append(
    hero({
      crumbs: [h("a", { href: link("runs"), text: "Runs" }), " / compare"],
      title: runs.length > 1 ? `${runs.length} runs compared` : "One run, nothing to compare",
      lede: runs.length > 1 ? difference(runs) : null,
    }, failed.map((text) => h("p", { class: "problem", text }))),
    h("section", { class: "wide" },
      h("div", { class: "side" },
        h("h2", { text: "Learning curves" }),
        h("p", { class: "hint", text: "Over training examples, as epochs may be of unequal size. Point at a place to read the values." }),
        h("ul", { class: "key" }, runs.map((run, index) =>
          h("li", {}, swatch(index), h("a", { href: link("run", run.id), text: run.name }),
            h("small", { text: `base ${run.base}, ${run.examples_from}` }), values[index])))),
      h("figure", {},
        runs.some((run) => run.columns.epoch.length) ? null : h("p", { text: "No epoch has been evaluated yet." }),
        curves.element,
        h("p", { class: "share" }, downloadButtons("Learning curves", curves)))),
    knownSection(runs, knowns) ?? "",
    tables,
  );
  const lengths = (all) => all.map((run) => run.columns.epoch.length).join();
  repeat(async () => {
    const again = (await load(ids)).runs;
    if (again.length !== runs.length || lengths(again) === lengths(runs)) return;
    runs.splice(0, runs.length, ...again);
    curves.update(series(), null);
    tables.replaceChildren(...tablesOf(runs));
    runs.forEach((run, index) => {
      if (!knowns[index]) return;
      knowns[index].run = run;
      knowns[index].show(curves.place === null ? run.columns.epoch.length - 1 : curves.evaluation(run, curves.place));
    });
  }, POLL, signal);
}

async function load(ids) {
  const answers = await Promise.allSettled(ids.map(oneRun));
  return {
    runs: answers.filter(({ status }) => status === "fulfilled").map(({ value }) => value.body),
    failed: answers.flatMap(({ status, reason }, index) => (status === "rejected" ? [`${ids[index]}: ${reason.message}`] : [])),
  };
}

// What a run had learned at an evaluation.
function valuesAt({ columns }, index) {
  const correct = columns.n_correct[index] === null ? "" : `${columns.n_correct[index]} correct, `;
  return `after ${millions(columns.examples[index])}: ${correct}${percent(columns.accuracy[index])}`;
}

const FIELDS = {
  base: (run) => `${run.base}`,
  "source of the examples": (run) => (run.operands === null ? run.examples_from : "drawn"),
  "distribution of the operands": (run) => run.operands,
  "distribution of the GCD": (run) => run.outcomes,
  model: (run) => run.short_model,
  seed: (run) => `${run.seed}`,
  task: (run) => run.task,
  "largest operand": (run) => whole(run.maximum),
};

// What the runs differ in, in a sentence.
function difference(runs) {
  const differing = Object.entries(FIELDS)
    .map(([text, of]) => [text, [...new Set(runs.map(of))].filter((value) => value !== null)])
    .filter(([, values]) => values.length > 1);
  if (!differing.length) return "They agree in base, training examples, model and seed.";
  return `They differ in ${differing.map(([text, values]) => `${text} (${values.join(" or ")})`).join("; ")}.`;
}

// A stamp-sized grid of D for each run of the GCD; pointing at the curves above goes back in training.
function knownSection(runs, knowns) {
  if (!knowns.some(Boolean)) return null;
  const figure = (known, index) => known && h("figure", {}, h("figcaption", {}, swatch(index), runs[index].name), known.element);
  return section(null, "Which GCD each knows",
    h("p", { class: "measure", text: "The first hundred, ten in a row. Green is correct, yellow is being learned. Below: how many are correct, after how many examples." }),
    h("div", { class: "knowns" }, knowns.map(figure)));
}

const examplesAt = (run, epoch) => millions(run.columns.examples[run.columns.epoch.indexOf(epoch)]);
const bestText = (run) =>
  `${run.columns.n_correct[run.columns.epoch.indexOf(run.best_epoch)]} after ${examplesAt(run, run.best_epoch)}`;

function learnedText(run, power) {
  const epoch = run.timeline?.prime_powers[power];
  return epoch === undefined ? "–" : examplesAt(run, epoch);
}

function tablesOf(runs) {
  const heads = () => ["", ...runs.map((run, index) => h("span", { class: "run-name" }, swatch(index), run.name))];
  const last = (run, key) => run.columns[key].at(-1) ?? null;
  const measures = {
    epochs: (run) => run.columns.epoch.length,
    examples: (run) => millions(last(run, "examples") ?? 0),
    "trained for": (run) => minutes(last(run, "seconds") ?? 0),
    accuracy: (run) => percent(last(run, "accuracy"), 2),
    "correct GCD": (run) => last(run, "n_correct") ?? "–",
    "most correct": (run) => (run.has_gcd && run.best_epoch ? bestText(run) : "–"),
  };
  const rows = Object.entries(measures).map(([text, of]) => [text, ...runs.map(of)]);
  const powers = [...new Set(runs.flatMap((run) => Object.keys(run.timeline?.prime_powers ?? {}).map(Number)))];
  const learned = powers.sort((p, q) => p - q).map((power) => [power, ...runs.map((run) => learnedText(run, power))]);
  const status = section(null, "Where they stand", savedTable("Where they stand", table("Where they stand", heads(), rows, { lined: true })));
  if (!powers.length) return [status];
  const title = "When each prime power was learned";
  return [status, section(null, title,
    h("p", { text: "The examples after which it first was correct; a dash if it never was." }),
    savedTable(title, table(title, heads(), learned, { lined: true })))];
}
