// Ask a model for the GCD of two integers: tokens, the decoder's distribution at each step, prediction, truth, reason.

import { ask, oneRun, surprise } from "../api.js";
import { announce, answer, h, share, whole } from "../dom.js";
import { attentionMaps, meanCross } from "../figures/attention.js";
import { integer, link, update } from "../route.js";
import { runTitle } from "./words.js";

export async function askView(place, { id, params }, context, signal) {
  const { body: run } = await oneRun(id);
  if (!run.has_gcd || !run.checkpoints.length) {
    place.append(
      h(
        "div",
        { class: "hero" },
        h("h1", { text: `Ask ${run.name}` }),
        h("p", {
          class: "lede",
          text: run.has_gcd
            ? "This run has no weights yet that could be asked."
            : `Only models of the GCD can be asked here; this one learned ${run.task}.`,
        }),
        h("p", {}, h("a", { href: link("run", id), text: "Back to the run" })),
      ),
    );
    return;
  }
  const page = new AskPage(place, run, signal);
  const epoch = integer(params, "epoch");
  if (run.checkpoints.includes(epoch)) page.weights.value = epoch;
  const usual = usualPair(run);
  const [a, b] = [integer(params, "a") ?? usual[0], integer(params, "b") ?? usual[1]];
  page.a.value = a;
  page.b.value = b;
  await page.ask();
}

// A first question of GCD 40, of the size that the model was trained on: uniform operands are hardly ever small.
function usualPair({ maximum, operands }) {
  if (operands !== "uniform" || maximum < 1000) return [Math.min(160, maximum), Math.min(120, maximum)];
  const part = Math.floor(maximum / 100);
  return [40 * part, 40 * (2 * part + 1)];
}

class AskPage {
  constructor(place, run, signal) {
    this.run = run;
    this.turn = 0;
    this.mapsOpen = false;
    const number = (name) =>
      h("input", {
        id: name,
        type: "text",
        inputmode: "numeric",
        pattern: "[0-9]*",
        autocomplete: "off",
        maxlength: 16,
        required: true,
        oninput: () => this.ask(),
      });
    this.a = number("a");
    this.b = number("b");
    this.weights = h(
      "select",
      { id: "weights", onchange: () => this.ask() },
      [...run.checkpoints]
        .reverse()
        .map((epoch) =>
          h("option", { value: epoch, text: `epoch ${epoch}: ${run.columns.n_correct[epoch - 1]} correct GCD` }),
        ),
    );
    this.problem = h("p", { class: "problem", id: "problem", role: "alert" });
    this.result = h("div", { class: "result", "aria-live": "polite" });
    const newest = run.checkpoints.at(-1);
    place.append(
      h(
        "div",
        { class: "hero" },
        h(
          "p",
          { class: "crumbs" },
          h("a", { href: link("runs"), text: "Runs" }),
          " / ",
          h("a", { href: link("run", run.id), text: runTitle(run) }),
          " / ask",
        ),
        h("h1", { text: "Ask the model" }),
        h("p", {
          class: "lede",
          text: `Type two integers up to ${whole(run.maximum)}. The model sees them only as digits in base ${run.base}; it was never told what a divisor is.${run.operands === "uniform" ? " Small integers were rare in its training." : ""}`,
        }),
      ),
      h(
        "form",
        {
          class: "question",
          onsubmit: (event) => {
            event.preventDefault();
            this.ask();
          },
        },
        h("span", { class: "gcd-word", "aria-hidden": "true", text: "GCD(" }),
        h("label", {}, h("span", { class: "unseen", text: "a" }), this.a),
        h("span", { "aria-hidden": "true", text: "," }),
        h("label", {}, h("span", { class: "unseen", text: "b" }), this.b),
        h("span", { class: "gcd-word", "aria-hidden": "true", text: ")" }),
        h(
          "div",
          { class: "choices" },
          h("button", {
            type: "button",
            class: "button quiet",
            id: "random",
            onclick: () => this.random(),
            text: "Random pair",
          }),
          h("button", {
            type: "button",
            class: "button quiet",
            id: "surprise",
            title: "A pair on which the model breaks its own rules",
            onclick: () => this.surprise(),
            text: "Surprise me",
          }),
          h("label", { class: "weights", hidden: run.checkpoints.length === 1 }, "weights of ", this.weights),
        ),
      ),
      h("p", {
        class: "hint",
        text:
          run.checkpoints.length === 1
            ? `Asked are the weights of epoch ${newest}, the only ones kept. Press r for a random pair, s for a surprise.`
            : "Press r for a random pair, s for a surprise.",
      }),
      this.problem,
      this.result,
    );
    window.addEventListener(
      "keydown",
      (event) => {
        if (event.altKey || event.ctrlKey || event.metaKey || event.target.closest("select, textarea")) return;
        if (event.key === "r") this.random();
        else if (event.key === "s") this.surprise();
        else return;
        event.preventDefault();
      },
      { signal },
    );
  }

  // A pair whose GCD is often larger than 1: k with P(k) ~ 1/k, then two multiples of it.
  random() {
    const largest = Math.min(100, Math.floor(this.run.maximum / 2));
    const k = Math.max(1, Math.floor(largest ** Math.random()));
    const multiple = () => k * (1 + Math.floor(Math.random() * Math.floor(this.run.maximum / k)));
    this.set(multiple(), multiple());
  }

  async surprise() {
    try {
      const found = await surprise(this.run.id, this.weights.value);
      if (found.a !== null) this.set(found.a, found.b);
      else this.say("At this epoch no pair of the test sets speaks against the rules: nothing to be surprised by.");
    } catch (error) {
      this.say(error.message);
    }
  }

  set(a, b) {
    this.a.value = a;
    this.b.value = b;
    return this.ask();
  }

  say(text) {
    this.problem.textContent = text;
  }

  // A problem in place of the answer: the last one was to another question.
  refuse(text) {
    this.say(text);
    this.result.replaceChildren();
  }

  async ask() {
    const turn = (this.turn += 1);
    const [a, b] = [this.a.value.trim().replaceAll(/[,_ ]/g, ""), this.b.value.trim().replaceAll(/[,_ ]/g, "")];
    const bad = [a, b].map((text) => !/^\d{1,16}$/.test(text) || Number(text) < 1 || Number(text) > this.run.maximum);
    [this.a, this.b].forEach((input, index) => input.setAttribute("aria-invalid", `${bad[index]}`));
    if (bad.includes(true)) {
      this.refuse(`Integers from 1 to ${whole(this.run.maximum)}, please: that is what this model has seen.`);
      return;
    }
    try {
      const began = performance.now();
      const found = await ask(this.run.id, a, b, this.weights.value);
      if (turn !== this.turn) return;
      this.say("");
      this.show(found);
      performance.measure("ask", { start: began });
      update({ a, b, epoch: Number(this.weights.value) === this.run.checkpoints.at(-1) ? null : this.weights.value });
    } catch (error) {
      if (turn === this.turn) this.refuse(error.message);
    }
  }

  show(found) {
    const mood = found.right ? "right" : found.prediction === found.rule ? "ruled" : "odd";
    const verdict = {
      right: "right",
      ruled: `wrong: it is ${whole(found.truth)}, but the rules foretell it`,
      odd: `wrong: it is ${whole(found.truth)}, and not what the rules say`,
    }[mood];
    this.result.replaceChildren(
      h(
        "div",
        { class: `verdict ${mood}` },
        h(
          "p",
          { class: "big" },
          h("b", { text: found.prediction === null ? "no integer" : whole(found.prediction) }),
          h("span", { class: "tag", text: verdict }),
        ),
        h("p", { class: "reason", text: found.reason }),
      ),
      this.pipeline(found),
      found.attention
        ? h("details", { class: "maps", open: this.mapsOpen, ontoggle: (event) => (this.mapsOpen = event.target.open) }, h("summary", { text: "Attention maps" }), ...attentionMaps(found))
        : h("p", { class: "hint", text: "A recurrent model has no attention to show." }),
    );
    announce(`${answer(found.prediction)}, ${verdict}. ${found.reason}`);
  }

  pipeline(found) {
    const chips = found.input.map((token) => h("span", { class: `token${token === "+" ? " sign" : ""}`, text: token }));
    const second = found.input.indexOf("+", 1);
    const attention = meanCross(found);
    const light = (row) =>
      chips.forEach((chip, column) =>
        chip.style.setProperty(
          "--light",
          row === null || !attention ? "0" : Math.min(1, attention[row][column] * 1.3).toFixed(3),
        ),
      );
    const operand = (name, value, part) =>
      h("div", { class: "operand" }, h("small", { text: `${name} = ${whole(value)}` }), h("div", { class: "tokens" }, part));
    const steps = found.steps.map((step, row) =>
      h(
        "div",
        {
          class: "step",
          tabindex: "0",
          onpointerenter: () => light(row),
          onpointerleave: () => light(null),
          onfocus: () => light(row),
          onblur: () => light(null),
          "aria-label": `step ${row + 1}: ${step.chosen}, ${share(step.likely[0].p)}`,
        },
        h("span", {
          class: `token out${step.chosen === "+" || step.chosen === "<end>" ? " sign" : ""}`,
          text: step.chosen === "<end>" ? "end" : step.chosen,
        }),
        h(
          "div",
          { class: "bars" },
          step.likely
            .filter((one, index) => index < 5 && (index < 2 || one.p > 0.001))
            .map((one, index) =>
              h(
                "div",
                { class: "bar-row" },
                h("span", { class: "bar-name", text: one.word === "<end>" ? "end" : one.word }),
                h(
                  "span",
                  { class: "bar" },
                  h("i", { class: index === 0 ? "chosen" : "other", style: { "--share": one.p.toFixed(4) } }),
                ),
                h("span", { class: "bar-share", text: share(one.p) }),
              ),
            ),
        ),
      ),
    );
    return h(
      "div",
      { class: "pipeline" },
      h(
        "section",
        { class: "plain" },
        h("h2", { text: "What it sees" }),
        h("p", { text: `The operands as digits in base ${found.base}, each after its sign.` }),
        h(
          "div",
          { class: "operands" },
          operand("a", found.a, chips.slice(0, second)),
          operand("b", found.b, chips.slice(second)),
        ),
      ),
      h(
        "section",
        { class: "plain" },
        h("h2", { text: "What it writes" }),
        h(
          "p",
          {},
          "One token at a time, each the likeliest of ",
          h("b", { text: whole(found.base + 5) }),
          " tokens.",
          found.value_of ? ` The digits mean ${found.value_of} = ${whole(found.prediction)}.` : "",
          attention ? " Point at a step to see which digits it reads." : "",
        ),
        h("div", { class: "steps" }, steps),
      ),
    );
  }
}
