// Ask a model for the GCD of two integers: tokens, the decoder's distribution at each step, prediction, truth, reason.

import { oneRun, surprise } from "../api.js";
import { Asker } from "../asker.js";
import { announce, answer, bar, h, hero, section, share, whole } from "../dom.js";
import { downloadButtons } from "../download.js";
import { attentionMaps, attentionRows, meanCross } from "../figures/attention.js";
import { integer, link, update } from "../route.js";
import { shareButtons } from "../share.js";
import { PriorSlider } from "./prior.js";
import { runTitle } from "./words.js";

// Gives the page, or null if there is nothing to ask.
export async function askView(place, { id, params }, context, signal) {
  const { body: run } = await oneRun(id);
  if (!run.has_gcd || !run.checkpoints.length) {
    const lede = run.has_gcd
      ? "This run has no weights yet that could be asked."
      : `Only models of the GCD can be asked here; this one learned ${run.task}.`;
    place.append(hero({ title: `Ask ${run.name}`, lede }, h("p", {}, h("a", { href: link("run", id), text: "Back to the run" }))));
    return null;
  }
  const page = new AskPage(place, run, signal);
  const epoch = integer(params, "epoch");
  if (run.checkpoints.includes(epoch)) page.weights.value = epoch;
  page.prior.start(integer(params, "prior"));
  const usual = usualPair(run);
  await page.set(integer(params, "a") ?? usual[0], integer(params, "b") ?? usual[1]);
  return page;
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
    this.asker = new Asker(run);
    this.turn = 0;
    this.asked = null;
    this.mapsOpen = false;
    const number = (name) =>
      h("input", { id: name, type: "text", inputmode: "numeric", pattern: "[0-9]*", autocomplete: "off", maxlength: 16, required: true, oninput: () => this.ask() });
    this.a = number("a");
    this.b = number("b");
    const weights = (epoch) => h("option", { value: epoch, text: `epoch ${epoch}: ${run.columns.n_correct[epoch - 1]} correct GCD` });
    this.weights = h("select", { id: "weights", onchange: () => this.ask() }, [...run.checkpoints].reverse().map(weights));
    this.problem = h("p", { class: "problem", id: "problem", role: "alert" });
    this.result = h("div", { class: "result", "aria-live": "polite" });
    this.prior = new PriorSlider(() => this.ask());
    this.inside = h("div", {});
    this.figure = h("div", { "data-figure": "ask" }, this.form(), this.hint(), this.problem, this.result, this.prior.element);
    const downloads = downloadButtons(`Answer of ${run.name}`, { element: this.figure, rows: () => answerRows(this.asked) });
    place.append(this.opening(), this.figure, shareButtons("ask", `Ask ${run.name}`, 640, downloads), this.inside);
    window.addEventListener("keydown", (event) => this.key(event), { signal });
  }

  opening() {
    const { run } = this;
    const small = run.operands === "uniform" ? " Small integers were rare in its training." : "";
    return hero({
      crumbs: [h("a", { href: link("runs"), text: "Runs" }), " / ", h("a", { href: link("run", run.id), text: runTitle(run) }), " / ask"],
      title: "Ask the model",
      lede: `Type two integers up to ${whole(run.maximum)}. The model sees them only as digits in base ${run.base}; nobody gave it the notion of a divisor.${small}`,
    });
  }

  form() {
    const submit = (event) => {
      event.preventDefault();
      this.ask();
    };
    const word = (text, kind = null) => h("span", { class: kind, "aria-hidden": "true", text });
    const operand = (input) => h("label", {}, h("span", { class: "unseen", text: input.id }), input);
    const button = (id, text, title, onclick) => h("button", { type: "button", class: "button quiet", id, title, onclick, text });
    return h("form", { class: "question", onsubmit: submit },
      word("GCD(", "gcd-word"), operand(this.a), word(","), operand(this.b), word(")", "gcd-word"),
      h("div", { class: "choices" },
        button("random", "Random pair", null, () => this.random()),
        button("surprise", "Surprise me", "A pair on which the model breaks its own rules", () => this.surprise()),
        h("label", { class: "weights", hidden: this.run.checkpoints.length === 1 }, "weights of ", this.weights)));
  }

  hint() {
    const { checkpoints } = this.run;
    const only = checkpoints.length === 1 ? `These are the weights of epoch ${checkpoints[0]}, the only ones that were saved. ` : "";
    return h("p", { class: "hint", text: `${only}Press r for a random pair, s for a surprise.` });
  }

  key(event) {
    if (event.altKey || event.ctrlKey || event.metaKey || event.target.closest("select, textarea")) return;
    if (event.key === "r") this.random();
    else if (event.key === "s") this.surprise();
    else return;
    event.preventDefault();
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
      const { a, b } = await surprise(this.run.id, this.weights.value);
      if (a !== null) this.set(a, b);
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

  // The operands as they were typed, without separators.
  question() {
    return [this.a, this.b].map((input) => input.value.trim().replaceAll(/[,_ ]/g, ""));
  }

  say(text) {
    this.problem.textContent = text;
  }

  // A problem in place of the answer: the last one was to another question.
  refuse(text) {
    this.asked = null;
    this.say(text);
    this.result.replaceChildren();
    this.inside.replaceChildren();
    this.prior.element.hidden = true;
  }

  async ask() {
    const turn = (this.turn += 1);
    const { maximum, checkpoints } = this.run;
    const inputs = [this.a, this.b];
    const [a, b] = this.question();
    const bad = [a, b].map((text) => !/^\d{1,16}$/.test(text) || Number(text) < 1 || Number(text) > maximum);
    inputs.forEach((input, index) => input.setAttribute("aria-invalid", `${bad[index]}`));
    if (bad.includes(true)) {
      this.refuse(`Integers from 1 to ${whole(maximum)}, please: that is what this model has seen.`);
      return;
    }
    try {
      const began = performance.now();
      const epoch = Number(this.weights.value);
      this.prior.offer(await this.asker.prior(epoch));
      const asked = await this.asker.ask(a, b, epoch, this.prior.share);
      if (turn !== this.turn) return;
      this.say("");
      this.show(asked);
      performance.measure("ask", { start: began });
      update({ a, b, epoch: epoch === checkpoints.at(-1) ? null : epoch, prior: this.prior.parameter });
    } catch (error) {
      if (turn === this.turn) this.refuse(error.message);
    }
  }

  maps(asked) {
    const element = h("div", {}, attentionMaps(asked));
    return [element, h("p", { class: "share" }, downloadButtons(`Attention of ${this.run.name}`, { element, rows: () => attentionRows(asked) }))];
  }

  show(asked) {
    this.asked = asked;
    const mood = asked.right ? "right" : asked.prediction === asked.rule ? "ruled" : "odd";
    const usual = asked.prediction === asked.own;
    const verdict = {
      right: "right",
      ruled: `wrong: it is ${whole(asked.truth)}, but the rules predict this mistake`,
      odd: `wrong: it is ${whole(asked.truth)}${usual ? ", and not what the rules say" : ""}`,
    }[mood];
    const keepOpen = (event) => (this.mapsOpen = event.target.open);
    this.result.replaceChildren(
      h("div", { class: `verdict ${mood}` },
        h("p", { class: "big" },
          h("b", { text: asked.prediction === null ? "no integer" : whole(asked.prediction) }),
          h("span", { class: "tag", text: verdict })),
        h("p", { class: "reason", text: asked.reason })));
    this.prior.show(asked);
    this.inside.replaceChildren(
      pipeline(asked),
      asked.attention
        ? h("details", { class: "maps", open: this.mapsOpen, ontoggle: keepOpen }, h("summary", { text: "Attention maps" }), this.maps(asked))
        : h("p", { class: "hint", text: "A recurrent model has no attention to show." }),
    );
    announce(`${answer(asked.prediction)}, ${verdict}. ${asked.reason}`);
  }
}

// What was asked and answered, as rows of a CSV: the answers that compete, then the tokens of the one that was given.
function answerRows(asked) {
  const heads = ["a", "b", "what", "value", "probability", "chosen"];
  if (!asked) return [heads];
  const { a, b, prediction } = asked;
  return [
    heads,
    ...(asked.candidates ?? []).map(({ answer: value, p }) => [a, b, "answer", answer(value), p, value === prediction]),
    ...asked.steps.flatMap(({ chosen, likely }, index) => likely.map(({ word, p }) => [a, b, `token ${index + 1}`, word, p, word === chosen])),
  ];
}

const shown = (token) => ({ "<begin>": "start", "<end>": "end" })[token] ?? token;

// The operands as tokens, and each decoder step; pointing at a step shows which tokens it reads.
function pipeline(asked) {
  const chips = asked.input.map((token) => h("span", { class: `token${token === "+" ? " sign" : ""}`, text: token }));
  const second = asked.input.indexOf("+", 1);
  const attention = meanCross(asked);
  const light = (row) =>
    chips.forEach((chip, column) =>
      chip.style.setProperty("--light", row === null || !attention ? "0" : Math.min(1, attention[row][column] * 1.3).toFixed(3)));
  const operand = (name, value, tokens) =>
    h("div", { class: "operand" }, h("small", { text: `${name} = ${whole(value)}` }), h("div", { class: "tokens" }, tokens));
  const step = ({ chosen, likely }, row) => {
    const [on, off] = [() => light(row), () => light(null)];
    const own = likely.find(({ word }) => word === chosen);
    const label = `step ${row + 1}: ${chosen}${own ? `, ${share(own.p)}` : ""}`;
    const bars = likely.filter(({ p }, index) => index < 5 && (index < 2 || p > 0.001));
    return h("div", { class: "step", tabindex: "0", onpointerenter: on, onpointerleave: off, onfocus: on, onblur: off, "aria-label": label },
      h("span", { class: `token out${chosen === "+" || chosen === "<end>" ? " sign" : ""}`, text: shown(chosen) }),
      h("div", { class: "bars" }, bars.map(({ word, p }) => bar(shown(word), p, word === chosen ? "chosen" : "other"))));
  };
  const greedy = asked.steps.every(({ chosen, likely }) => likely[0].word === chosen);
  return h("div", { class: "pipeline" },
    section("plain", "What it sees",
      h("p", { text: `The operands as digits in base ${asked.base}, each after its sign.` }),
      h("div", { class: "operands" },
        operand("a", asked.a, chips.slice(0, second)),
        operand("b", asked.b, chips.slice(second)))),
    section("plain", "What it writes",
      h("p", {},
        greedy
          ? ["One token at a time, each the likeliest of ", h("b", { text: whole(asked.base + 5) }), " tokens."]
          : "The answer was chosen as a whole. These are its tokens, and how likely the model finds each.",
        asked.value_of ? ` The digits mean ${asked.value_of} = ${whole(asked.prediction)}.` : "",
        attention ? " Point at a step to see which digits it reads." : ""),
      h("div", { class: "steps" }, asked.steps.map(step))));
}
