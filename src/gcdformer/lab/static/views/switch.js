// The switch of a run's page between decision priors. The run's own is in its files; for another one the same weights answer
// the test sets again, which the server does when it is asked to.

import { decided } from "../api.js";
import { h, percent } from "../dom.js";

// How long the slider has to rest on an epoch before its model is asked, in milliseconds.
const REST = 400;

export class PriorSwitch {
  // onChoose(name) is called when a person chooses, onMade() when an epoch under the chosen prior is there.
  constructor(run, wanted, { onChoose, onMade }, signal) {
    const { own, offered } = run.priors;
    this.run = run;
    this.onMade = onMade;
    this.made = new Map();
    this.wanted = offered.some(({ name }) => name === wanted) ? wanted : own;
    this.inputs = offered.map(({ name }) =>
      h("input", { type: "radio", name: "prior", value: name, onchange: () => {
        this.wanted = name;
        onChoose(name === own ? null : name);
      } }));
    if (offered.length === 1) this.inputs.push(h("input", { type: "radio", name: "prior", value: "natural" }));
    this.note = h("p", { class: "hint", role: "status" });
    this.element = h("fieldset", { class: "switch" },
      h("legend", { text: "Answers decided under" }),
      h("div", { class: "segments" },
        this.inputs.map((input, place) => h("label", {}, input, h("span", { text: offered[place]?.says ?? "another prior" })))),
      this.note);
    signal.addEventListener("abort", () => this.stop());
  }

  stop() {
    clearTimeout(this.timer);
    this.asking?.abort();
  }

  // What an epoch is under the chosen prior, if that is another than the run's own; null if it is not, or not yet there.
  show(epoch, run = this.run) {
    const { own, refusal } = run.priors;
    const kept = run.checkpoints.includes(epoch);
    const shown = kept && !refusal ? this.wanted : own;
    const details = this.made.get(`${epoch} ${shown}`) ?? null;
    if (details || shown === own || epoch !== this.epoch || shown !== this.shown) this.stop();
    else return null; // it is being asked for
    Object.assign(this, { run, epoch, shown });
    for (const input of this.inputs) {
      input.checked = input.value === shown;
      input.disabled = input.value !== own && (Boolean(refusal) || !kept);
    }
    if (refusal) this.say(refusal);
    else if (!kept) this.say(`The weights of epoch ${epoch} are not kept, so it is shown as it was evaluated.${keptEpochs(run)}`);
    else if (shown === own) this.say(invitation(run));
    else if (details) this.say(`The curves, the sizes and orders, and the history stay as the run was evaluated: under ${priorWords(run, own)}.`);
    else {
      this.busy(0);
      this.timer = setTimeout(() => this.load(epoch, shown), REST);
    }
    return details;
  }

  async load(epoch, name) {
    const asking = (this.asking = new AbortController());
    try {
      const details = await decided(this.run.id, epoch, name, (done) => this.busy(done), asking.signal);
      this.made.set(`${epoch} ${name}`, details);
      if (!asking.signal.aborted) this.onMade();
    } catch ({ message }) {
      if (!asking.signal.aborted) this.say(message, "problem");
    }
  }

  busy(done) {
    this.say(`Asking the model of epoch ${this.epoch} again, under ${priorWords(this.run, this.shown)}: ${percent(100 * done, 0)}`, "hint busy");
  }

  say(text, kind = "hint") {
    this.note.className = kind;
    this.note.textContent = text;
  }
}

export const priorWords = (run, name) => run.priors.offered.find((prior) => prior.name === name)?.says ?? `the prior ${name}`;

const invitation = (run) =>
  run.priors.own === "training"
    ? "The other choice asks the same weights what they would answer if each GCD came up as often as among random pairs."
    : `This run was evaluated under ${priorWords(run, run.priors.own)}; the same weights can be asked under another.`;

// Which epochs have weights, as a sentence.
export function keptEpochs({ checkpoints }) {
  if (!checkpoints.length) return "";
  const which = checkpoints.length > 6 ? `epochs ${checkpoints[0]} to ${checkpoints.at(-1)}` : `epoch ${checkpoints.join(", ")}`;
  return ` Those of ${which} are.`;
}
