// Train here: choose base, distributions and minutes, start, watch, stop. The result is an ordinary run folder.

import { repeat, runs, startTraining, stopTraining, trainings } from "../api.js";
import { command, h, minutes, percent } from "../dom.js";
import { spark } from "../figures/spark.js";
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
    h(
      "div",
      { class: "hero" },
      h("h1", { text: "Train here" }),
      h("p", {
        class: "lede",
        text: "A small transformer on your own processor. The base decides which primes come easily: those that divide it. The distributions decide how often the model sees the rest.",
      }),
    ),
  );
  if (!context.training) {
    place.append(
      h(
        "section",
        { class: "plain" },
        h("h2", { text: "Training is off" }),
        h("p", {
          text: "Pages should not start work on a machine unasked, so this has to be allowed when the lab is started:",
        }),
        command("gcdformer lab --allow-training"),
        h("p", { text: "Or train from the command line; the run appears in the list by itself:" }),
        command("gcdformer train demo --base 30 --max-minutes 3 --out runs/base-30"),
      ),
    );
    return;
  }
  const select = (id, options) =>
    h(
      "select",
      { id },
      Object.keys(options).map((value) => h("option", { value, text: value, selected: params.get(id) === value })),
    );
  const base = h("input", {
    id: "base",
    type: "number",
    min: 2,
    max: 20000,
    step: 1,
    required: true,
    value: params.get("base") ?? 420,
  });
  const time = h("input", {
    id: "minutes",
    type: "number",
    min: 0.1,
    max: 60,
    step: "any",
    required: true,
    value: params.get("minutes") ?? 3,
  });
  const size = h("input", {
    id: "epoch-size",
    type: "number",
    min: 1000,
    max: 1000000,
    step: 1000,
    required: true,
    value: params.get("epoch-size") ?? 50000,
  });
  const tests = h("input", {
    id: "test-size",
    type: "number",
    min: 1000,
    max: 100000,
    step: 1000,
    required: true,
    value: params.get("test-size") ?? 20000,
  });
  const threads = h("input", {
    id: "threads",
    type: "number",
    min: 1,
    max: 1024,
    step: 1,
    required: true,
    value: params.get("threads") ?? context.cores,
  });
  const [operands, outcomes] = [select("operands", OPERANDS), select("outcomes", OUTCOMES)];
  const problem = h("p", { class: "problem", role: "alert" });
  const started = h("div", { class: "trainings", "aria-live": "polite" });
  const [factors, operandNote, outcomeNote] = [h("small", {}), h("small", {}), h("small", {})];
  const start = async (event) => {
    event.preventDefault();
    problem.textContent = "";
    try {
      await startTraining({
        base: Number(base.value),
        minutes: Number(time.value),
        epoch_size: Number(size.value),
        test_size: Number(tests.value),
        threads: Number(threads.value),
        operands: operands.value,
        outcomes: outcomes.value,
      });
      await look();
    } catch (error) {
      problem.textContent = error.message;
    }
  };
  const explain = () => {
    factors.textContent = primes(Number(base.value));
    operandNote.textContent = OPERANDS[operands.value];
    outcomeNote.textContent = OUTCOMES[outcomes.value];
  };
  const describe = () => {
    explain();
    update({
      base: base.value,
      minutes: time.value,
      "epoch-size": size.value,
      "test-size": tests.value,
      threads: threads.value,
      operands: operands.value,
      outcomes: outcomes.value,
    });
  };
  const field = (label, input, note) =>
    h("div", { class: "field" }, h("label", { for: input.id, text: label }), input, note);
  const more = h(
    "details",
    { class: "more" },
    h("summary", { text: "Epochs, tests and threads" }),
    h(
      "div",
      { class: "order" },
      field("Examples an epoch", size, h("small", { text: "between two evaluations: the slider's steps" })),
      field("Pairs in each test", tests, h("small", { text: "there are two, natural and stratified" })),
      field("Threads", threads, h("small", { text: `this machine has ${context.cores} cores` })),
    ),
  );
  more.addEventListener("invalid", () => (more.open = true), true);
  place.append(
    h(
      "form",
      { class: "order", onsubmit: start, oninput: describe },
      field("Base", base, factors),
      field("Operands", operands, operandNote),
      field("GCD of the pairs", outcomes, outcomeNote),
      field("Minutes", time, h("small", { text: "three are enough for the first steps" })),
      h("div", { class: "field" }, h("button", { class: "button", type: "submit", text: "Start training" })),
      more,
      problem,
    ),
    started,
  );
  explain();
  const look = async () => {
    const [mine, all] = await Promise.all([trainings(), runs()]).catch(() => [null, null]);
    if (mine)
      started.replaceChildren(
        ...mine.map((one) =>
          card(
            one,
            all.body.runs.find((run) => run.name === one.id),
            look,
            problem,
          ),
        ),
      );
  };
  await look();
  repeat(look, POLL, signal);
}

function card(one, run, look, problem) {
  const epochs = run?.epochs ?? 0;
  const state = one.running
    ? epochs
      ? `training, epoch ${epochs} evaluated after ${minutes(run.seconds)}`
      : "starting: the first evaluation is on its way"
    : one.error
      ? `failed: ${one.error}`
      : one.stopped
        ? "stopped and saved; it can be resumed"
        : "finished";
  const stop = async () => {
    try {
      await stopTraining(one.id);
    } catch (error) {
      problem.textContent = error.message;
    }
    await look();
  };
  return h(
    "section",
    {
      class: "plain training",
      "data-training": one.id,
      "data-state": one.running ? "running" : one.error ? "failed" : one.stopped ? "stopped" : "finished",
    },
    h("h2", {}, one.id, one.running ? h("span", { class: "badge live", text: "training" }) : null),
    h("p", {
      text: `Base ${one.base}, ${one.operands} operands, ${one.outcomes} outcomes, ${one.minutes} minutes: ${state}.`,
    }),
    epochs
      ? h(
          "div",
          { class: "progress" },
          spark(run.curve, Math.max(20, ...run.curve.map(([, value]) => value)), { width: 300, height: 60 }),
          h(
            "p",
            {},
            h("b", { text: `${run.n_correct}` }),
            " correct GCD, ",
            h("b", { text: percent(run.accuracy) }),
            " accuracy",
          ),
        )
      : null,
    h(
      "p",
      { class: "actions" },
      run ? h("a", { class: "button", href: link("run", run.id), text: "Watch the sieve" }) : null,
      one.running ? h("button", { type: "button", class: "button quiet", onclick: stop, text: "Stop" }) : null,
    ),
  );
}

// 420 -> "420 = 2² · 3 · 5 · 7: these primes come first."
function primes(base) {
  if (!Number.isInteger(base) || base < 2 || base > 20000) return "an integer from 2 to 20,000";
  const parts = [];
  for (let p = 2, rest = base; rest > 1; p += 1) {
    let exponent = 0;
    for (; rest % p === 0; rest /= p) exponent += 1;
    if (exponent)
      parts.push(exponent > 1 ? `${p}${[...`${exponent}`].map((digit) => "⁰¹²³⁴⁵⁶⁷⁸⁹"[digit]).join("")}` : `${p}`);
  }
  return parts.length === 1 && parts[0] === `${base}`
    ? `${base} is a prime: its powers come first`
    : `${base} = ${parts.join(" · ")}: these primes come first`;
}
