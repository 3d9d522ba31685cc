// Several runs in one picture: their curves, their last evaluation, and when each learned each prime power.

import { oneRun, repeat } from "../api.js";
import { h, millions, minutes, percent, SERIES } from "../dom.js";
import { Curves } from "../figures/curves.js";
import { Known } from "../figures/known.js";
import { link, splitIds } from "../route.js";

const MOST = 8;
const POLL = 4000;

export async function compareView(place, { params }, context, signal) {
  const ids = [...new Set(splitIds(params.get("runs")))].slice(0, MOST);
  if (!ids.length) {
    place.append(
      h("h1", { text: "Compare" }),
      h(
        "p",
        { class: "lede" },
        "Nothing is chosen: tick some runs in the ",
        h("a", { href: link("runs"), text: "list" }),
        ".",
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
  const look = (epoch) =>
    runs.forEach((run, index) => {
      knowns[index]?.show(epoch);
      const at = run.columns.epoch.indexOf(epoch);
      values[index].textContent =
        at < 0
          ? `no epoch ${epoch}`
          : `epoch ${epoch}: ${run.columns.n_correct[at] ?? "–"} correct, ${percent(run.columns.accuracy[at])}`;
    });
  const curves = new Curves(series(runs), { onLook: look });
  const tables = h("div", {}, ...drawTables(runs));
  place.append(
    h(
      "div",
      { class: "hero" },
      h("p", { class: "crumbs" }, h("a", { href: link("runs"), text: "Runs" }), " / compare"),
      h("h1", { text: `${runs.length} runs compared` }),
      h("p", { class: "lede", text: difference(runs) }),
      failed.map((text) => h("p", { class: "problem", text })),
    ),
    h(
      "section",
      { class: "wide" },
      h(
        "div",
        { class: "side" },
        h("h2", { text: "Learning curves" }),
        h("p", { class: "hint", text: "Point at an epoch to read the values." }),
        h(
          "ul",
          { class: "key" },
          runs.map((run, index) =>
            h(
              "li",
              {},
              h("i", { class: "line", style: { background: SERIES[index] } }),
              h("a", { href: link("run", run.id), text: run.name }),
              h("small", { text: `base ${run.base}, ${run.operands} operands, ${run.outcomes} outcomes` }),
              values[index],
            ),
          ),
        ),
      ),
      h("figure", {}, curves.element),
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
        knowns[index]?.show(curves.epoch);
      });
    },
    POLL,
    signal,
  );
}

// What the runs differ in, in a sentence.
function difference(runs) {
  const fields = {
    base: "base",
    operands: "law of the operands",
    outcomes: "law of the GCD",
    short_model: "model",
    seed: "seed",
    task: "task",
    maximum: "largest operand",
  };
  const differing = Object.entries(fields).filter(([key]) => new Set(runs.map((run) => run[key])).size > 1);
  if (!differing.length) return "They agree in base, laws, model and seed.";
  const values = (key) => [...new Set(runs.map((run) => run[key]))].join(key === "short_model" ? " or " : ", ");
  return `They differ in ${differing.map(([key, text]) => `${text} (${values(key)})`).join("; ")}.`;
}

// A stamp-sized grid of D for each run of the GCD; pointing at the curves above changes the epoch.
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
    h("p", { text: "The first hundred, ten a row. Green is correct, yellow is being learned." }),
    h("div", { class: "knowns" }, knowns.map(figure)),
  );
}

const bestText = (run) => `${run.columns.n_correct[run.columns.epoch.indexOf(run.best_epoch)]} at epoch ${run.best_epoch}`;

function drawTables(runs) {
  const names = runs.map((run, index) =>
    h("th", { scope: "col" }, h("i", { class: "line", style: { background: SERIES[index] } }), run.name),
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
    h(
      "section",
      {},
      h("h2", { text: "When each prime power was learned" }),
      h("p", { text: "The epoch at which it first was correct; a dash if it never was." }),
      table(
        "When each prime power was learned",
        powers.map((power) =>
          h(
            "tr",
            {},
            h("th", { scope: "row", text: `${power}` }),
            runs.map((run) => h("td", { text: `${run.timeline?.prime_powers[power] ?? "–"}` })),
          ),
        ),
      ),
    ),
  ];
}
