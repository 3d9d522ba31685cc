// Train here: choose base, distributions and minutes, start, watch, stop. The result is an ordinary run folder.

import { repeat, runs, startTraining, stopTraining, trainings } from "../api.js";
import { command, h, hero, minutes, percent, product, section } from "../dom.js";
import { spark } from "../figures/curves.js";
import { link, update } from "../route.js";

const POLL = 1500;
const OPERANDS = { "log-uniform": "small integers as often as large ones", uniform: "every integer equally often" };
const OUTCOMES = {
  "log-uniform": "P(k) ~ 1/k: large GCD more often than by chance",
  natural: "as chance has it: mostly 1",
  "inverse-sqrt": "P(k) ~ 1/√k: larger GCD still more often",
  "inverse-1.5": "P(k) ~ 1/k^1.5: a little more often than by chance",
  uniform: "every GCD up to 100 equally often",
  mixture: "natural, with 5 % of uniform ones",
};

export async function trainView(place, { params }, context, signal) {
  place.append(
    hero({
      title: "Train here",
      lede: "A small transformer on your own processor. The base decides which primes come easily: those that divide it. The distributions decide how often the model sees the rest.",
    }),
  );
  if (!context.training) {
    place.append(
      section("plain", "Training is off",
        h("p", { text: "A page should not start work on your machine unless you allow it. To allow it, start the lab with:" }),
        command("gcdformer lab --allow-training"),
        h("p", { text: "Or train from the command line; the run appears in the list by itself:" }),
        command("gcdformer train demo --base 30 --max-minutes 3 --out runs/base-30")),
    );
    return;
  }
  const number = (id, usual, min, max, step) =>
    h("input", { id, type: "number", min, max, step, required: true, value: params.get(id) ?? usual });
  const select = (id, options) =>
    h("select", { id }, Object.keys(options).map((value) => h("option", { value, text: value, selected: params.get(id) === value })));
  const inputs = {
    base: number("base", 420, 2, 20000, 1),
    minutes: number("minutes", 3, 0.1, 60, "any"),
    epoch_size: number("epoch-size", 50000, 1000, 1000000, 1000),
    test_size: number("test-size", 20000, 1000, 100000, 1000),
    threads: number("threads", context.cores, 1, 1024, 1),
    operands: select("operands", OPERANDS),
    outcomes: select("outcomes", OUTCOMES),
  };
  const problem = h("p", { class: "problem", role: "alert" });
  const started = h("div", { class: "trainings", "aria-live": "polite" });
  const [factors, operandNote, outcomeNote] = [h("small", {}), h("small", {}), h("small", {})];
  const attempt = async (change) => {
    problem.textContent = "";
    try {
      await change();
    } catch (error) {
      problem.textContent = error.message;
    }
    await look();
  };
  const start = (event) => {
    event.preventDefault();
    const value = (input) => (input.type === "number" ? Number(input.value) : input.value);
    return attempt(() => startTraining(Object.fromEntries(Object.entries(inputs).map(([name, input]) => [name, value(input)]))));
  };
  const explain = () => {
    factors.textContent = primes(Number(inputs.base.value));
    operandNote.textContent = OPERANDS[inputs.operands.value];
    outcomeNote.textContent = OUTCOMES[inputs.outcomes.value];
  };
  const describe = () => {
    explain();
    update(Object.fromEntries(Object.values(inputs).map((input) => [input.id, input.value])));
  };
  const field = (label, input, note) => h("div", { class: "field" }, h("label", { for: input.id, text: label }), input, note);
  const note = (text) => h("small", { text });
  const more = h("details", { class: "more" },
    h("summary", { text: "Epochs, tests and threads" }),
    h("div", { class: "order" },
      field("Examples per epoch", inputs.epoch_size, note("between two evaluations: the slider's steps")),
      field("Pairs in each test", inputs.test_size, note("there are two, natural and stratified")),
      field("Threads", inputs.threads, note(`this machine has ${context.cores} cores`))));
  more.addEventListener("invalid", () => (more.open = true), true);
  place.append(
    h("form", { class: "order", onsubmit: start, oninput: describe },
      field("Base", inputs.base, factors),
      field("Operands", inputs.operands, operandNote),
      field("GCD of the pairs", inputs.outcomes, outcomeNote),
      field("Minutes", inputs.minutes, note("three are enough for the first steps")),
      h("div", { class: "field" }, h("button", { class: "button", type: "submit", text: "Start training" })),
      more,
      problem),
    started,
  );
  explain();
  const look = async () => {
    const [reports, all] = await Promise.all([trainings(), runs()]).catch(() => [null, null]);
    const stop = (id) => attempt(() => stopTraining(id));
    const runOf = (report) => all.body.runs.find((run) => run.name === report.id);
    if (reports) started.replaceChildren(...reports.map((report) => card(report, runOf(report), stop)));
  };
  await look();
  repeat(look, POLL, signal);
}

function status(report, run) {
  if (report.running)
    return run?.epochs
      ? `training, epoch ${run.epochs} evaluated after ${minutes(run.seconds)}`
      : "starting: the first evaluation is on its way";
  if (report.error) return `failed: ${report.error}`;
  return report.stopped ? "stopped and saved; it can be resumed" : "finished";
}

function card(report, run, stop) {
  const state = report.running ? "running" : report.error ? "failed" : report.stopped ? "stopped" : "finished";
  const { id, base, operands, outcomes, minutes: limit } = report;
  return h("section", { class: "plain training", "data-training": id, "data-state": state },
    h("h2", {}, id, report.running ? h("span", { class: "badge live", text: "training" }) : null),
    h("p", { text: `Base ${base}, ${operands} operands, ${outcomes} outcomes, ${limit} minutes: ${status(report, run)}.` }),
    run?.epochs
      ? h("div", { class: "progress" },
          spark(run.curve, Math.max(20, ...run.curve.map(([, value]) => value)), { width: 300, height: 60 }),
          h("p", {}, h("b", { text: `${run.n_correct}` }), " correct GCD, ", h("b", { text: percent(run.accuracy) }), " accuracy"))
      : null,
    h("p", { class: "actions" },
      run && h("a", { class: "button", href: link("run", run.id), text: "Watch the sieve" }),
      report.running && h("button", { type: "button", class: "button quiet", onclick: () => stop(id), text: "Stop" })));
}

// 420 -> "420 = 2² · 3 · 5 · 7: these primes come first."
function primes(base) {
  if (!Number.isInteger(base) || base < 2 || base > 20000) return "an integer from 2 to 20,000";
  const parts = product(base);
  return parts === `${base}` ? `${base} is a prime: its powers come first` : `${base} = ${parts}: these primes come first`;
}
