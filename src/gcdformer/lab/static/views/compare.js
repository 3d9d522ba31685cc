// Several runs in one picture: their curves, their last evaluation, and when each learned each prime power.

import { oneRun, repeat } from "../api.js";
import { h, millions, minutes, percent, SERIES, whole } from "../dom.js";
import { Curves } from "../figures/curves.js";
import { Known } from "../figures/known.js";
import { link, splitIds } from "../route.js";

const MOST = 8;
const POLL = 4000;

export async function compareView(place, { params }, context, signal) {
  const ids = [...new Set(splitIds(params.get("runs")))].slice(0, MOST);
  if (!ids.length) {
    place.append(
      h(
        "div",
        { class: "hero" },
        h("h1", { text: "Compare" }),
        h(
          "p",
          { class: "lede" },
          "Nothing is chosen: tick some runs in the ",
          h("a", { href: link("runs"), text: "list" }),
          ".",
        ),
      ),
    );
    return;
  }
  const load = async () => {
    const found = await Promise.allSettled(ids.map(oneRun));
    return {
      runs: found.filter((one) => one.status === "fulfilled").map((one) => one.value.body),
      failed: found.flatMap((one, index) => (one.status === "rejected" ? [`${ids[index]}: ${one.reason.message}`] : [])),
    };
  };
  const { runs, failed } = await load();
  if (!runs.length) throw Object.assign(new Error(failed.join("; ")), { status: 404 });
  const series = (all) => all.map((run, index) => ({ name: run.name, colour: SERIES[index], columns: run.columns }));
  const values = runs.map(() => h("small", { class: "at-epoch" }));
  const knowns = runs.map((run) => (run.has_gcd ? new Known(run) : null));
  const look = (examples) =>
    runs.forEach((run, index) => {
      const at = curves.evaluation(run, examples);
      knowns[index]?.show(at);
      values[index].textContent = at < 0 ? "nothing evaluated yet" : valuesAt(run, at);
    });
  const curves = new Curves(series(runs), { axis: "examples", onLook: look });
  const tables = h("div", {}, ...drawTables(runs));
  place.append(
    h(
      "div",
      { class: "hero" },
      h("p", { class: "crumbs" }, h("a", { href: link("runs"), text: "Runs" }), " / compare"),
      h("h1", { text: runs.length > 1 ? `${runs.length} runs compared` : "One run, nothing to compare" }),
      runs.length > 1 ? h("p", { class: "lede", text: difference(runs) }) : null,
      failed.map((text) => h("p", { class: "problem", text })),
    ),
    h(
      "section",
      { class: "wide" },
      h(
        "div",
        { class: "side" },
        h("h2", { text: "Learning curves" }),
        h("p", { class: "hint", text: "Over training examples, as epochs may be of unequal size. Point at a place to read the values." }),
        h(
          "ul",
          { class: "key" },
          runs.map((run, index) =>
            h(
              "li",
              {},
              h("i", { class: "line", style: { background: SERIES[index] } }),
              h("a", { href: link("run", run.id), text: run.name }),
              h("small", { text: `base ${run.base}, ${run.examples_from}` }),
              values[index],
            ),
          ),
        ),
      ),
      h(
        "figure",
        {},
        runs.some((run) => run.columns.epoch.length) ? null : h("p", { text: "No epoch has been evaluated yet." }),
        curves.element,
      ),
    ),
    knownSection(runs, knowns),
    tables,
  );
  let last = JSON.stringify(runs.map((run) => run.columns.epoch.length));
  repeat(
    async () => {
      const again = await load();
      const now = JSON.stringify(again.runs.map((run) => run.columns.epoch.length));
      if (now === last || again.runs.length !== runs.length) return;
      last = now;
      curves.update(series(again.runs), null);
      tables.replaceChildren(...drawTables(again.runs));
      again.runs.forEach((run, index) => {
        runs[index] = run;
        if (knowns[index]) knowns[index].run = run;
        knowns[index]?.show(curves.place === null ? run.columns.epoch.length - 1 : curves.evaluation(run, curves.place));
      });
    },
    POLL,
    signal,
  );
}

// What a run had learned at an evaluation.
function valuesAt({ columns }, index) {
  const correct = columns.n_correct[index] === null ? "" : `${columns.n_correct[index]} correct, `;
  return `after ${millions(columns.examples[index])}: ${correct}${percent(columns.accuracy[index])}`;
}

// What the runs differ in, in a sentence.
function difference(runs) {
  const fields = {
    base: (run) => `${run.base}`,
    "source of the examples": (run) => (run.operands === null ? run.examples_from : "drawn"),
    "distribution of the operands": (run) => run.operands,
    "distribution of the GCD": (run) => run.outcomes,
    model: (run) => run.short_model,
    seed: (run) => `${run.seed}`,
    task: (run) => run.task,
    "largest operand": (run) => whole(run.maximum),
  };
  const differing = Object.entries(fields)
    .map(([text, of]) => [text, [...new Set(runs.map(of))].filter((value) => value !== null)])
    .filter(([, values]) => values.length > 1);
  if (!differing.length) return "They agree in base, training examples, model and seed.";
  return `They differ in ${differing.map(([text, values]) => `${text} (${values.join(" or ")})`).join("; ")}.`;
}

// A stamp-sized grid of D for each run of the GCD; pointing at the curves above goes back in training.
function knownSection(runs, knowns) {
  if (!knowns.some(Boolean)) return null;
  const figure = (known, index) =>
    known &&
    h(
      "figure",
      {},
      h("figcaption", {}, h("i", { class: "line", style: { background: SERIES[index] } }), runs[index].name),
      known.element,
    );
  return h(
    "section",
    {},
    h("h2", { text: "Which GCD each knows" }),
    h("p", { text: "The first hundred, ten a row. Green is correct, yellow is being learned. Below: how many are correct, after how many examples." }),
    h("div", { class: "knowns" }, knowns.map(figure)),
  );
}

const examplesAt = (run, epoch) => millions(run.columns.examples[run.columns.epoch.indexOf(epoch)]);
const bestText = (run) =>
  `${run.columns.n_correct[run.columns.epoch.indexOf(run.best_epoch)]} after ${examplesAt(run, run.best_epoch)}`;

function learnedText(run, power) {
  const epoch = run.timeline?.prime_powers[power];
  return epoch === undefined ? "–" : examplesAt(run, epoch);
}

function drawTables(runs) {
  const names = runs.map((run, index) =>
    h(
      "th",
      { scope: "col" },
      h("span", { class: "run-name" }, h("i", { class: "line", style: { background: SERIES[index] } }), run.name),
    ),
  );
  const value = (run, key) => run.columns[key].at(-1) ?? null;
  const rows = [
    ["epochs", (run) => run.columns.epoch.length],
    ["examples", (run) => millions(value(run, "examples") ?? 0)],
    ["trained for", (run) => minutes(value(run, "seconds") ?? 0)],
    ["accuracy", (run) => percent(value(run, "accuracy"), 2)],
    ["correct GCD", (run) => value(run, "n_correct") ?? "–"],
    ["most correct", (run) => (run.has_gcd && run.best_epoch ? bestText(run) : "–")],
  ];
  const table = (head, body) =>
    h(
      "div",
      { class: "scroll", tabindex: "0", role: "region", "aria-label": head },
      h(
        "table",
        { class: "figures lined" },
        h("thead", {}, h("tr", {}, h("td", {}), ...names.map((name) => name.cloneNode(true)))),
        h("tbody", {}, body),
      ),
    );
  const powers = [...new Set(runs.flatMap((run) => Object.keys(run.timeline?.prime_powers ?? {}).map(Number)))].sort(
    (one, other) => one - other,
  );
  return [
    h(
      "section",
      {},
      h("h2", { text: "Where they stand" }),
      table(
        "Where they stand",
        rows.map(([text, of]) =>
          h(
            "tr",
            {},
            h("th", { scope: "row", text }),
            runs.map((run) => h("td", { text: `${of(run)}` })),
          ),
        ),
      ),
    ),
    powers.length
      ? h(
          "section",
          {},
          h("h2", { text: "When each prime power was learned" }),
          h("p", { text: "The examples after which it first was correct; a dash if it never was." }),
          table(
            "When each prime power was learned",
            powers.map((power) =>
              h(
                "tr",
                {},
                h("th", { scope: "row", text: `${power}` }),
                runs.map((run) => h("td", { text: learnedText(run, power) })),
              ),
            ),
          ),
        )
      : "",
  ];
}
