// The decision prior of the Ask page: a slider from the training's to another one, and the answers that compete.

import { answer, bar, h } from "../dom.js";

const STEPS = 20;
const SHOWN = 5;

export class PriorSlider {
  // `changed` is called when the slider moves.
  constructor(changed) {
    this.offered = null;
    this.wanted = null;
    this.slider = h("input", { type: "range", id: "prior", min: 0, max: 100, step: 100 / STEPS, oninput: () => this.move(changed) });
    this.ends = h("div", { class: "ends", "aria-hidden": "true" });
    this.value = h("output", { for: "prior" });
    this.says = h("p", {});
    this.control = h("div", {}, h("label", { for: "prior" }, "decided under ", this.value), this.slider, this.ends);
    this.bars = h("div", { class: "bars" });
    this.note = h("p", { class: "hint" });
    this.element = h("section", { class: "prior", hidden: true },
      h("div", {},
        h("h2", { text: "Which answer it chooses" }),
        this.says,
        this.control),
      h("div", { role: "group", "aria-label": "The likeliest answers" }, this.bars, this.note));
  }

  // Begin at this percentage of the way, if any is given.
  start(percentage) {
    this.wanted = percentage === null ? null : Math.min(100, percentage);
  }

  // The prior at the far end; the slider stays where it is.
  offer(prior) {
    const first = this.offered === null;
    this.offered = prior;
    if (!prior) return;
    if (first) this.slider.value = this.wanted ?? 100 * prior.own;
    this.ends.replaceChildren(h("span", { text: "training" }), h("span", { text: prior.name }));
    this.draw();
  }

  // How far to go from the training's prior: 0..1.
  get share() {
    return this.offered ? Number(this.slider.value) / 100 : 0;
  }

  // The slider in the page's address: nothing if it is where the run itself decides.
  get parameter() {
    return this.offered && this.share !== this.offered.own ? this.slider.value : null;
  }

  move(changed) {
    this.draw();
    changed();
  }

  draw() {
    const { name, says, own } = this.offered;
    const value = Number(this.slider.value);
    const text = { 0: "the training prior", 100: says }[value] ?? `${value}\u00a0% of the way to ${says}`;
    this.value.textContent = text;
    this.slider.setAttribute("aria-valuetext", text);
    const often = name === "natural" ? "as often as among random pairs, where 1 comes up in 61 of 100" : `under ${says}`;
    this.control.hidden = isFlat(this.offered.offsets);
    this.says.textContent = this.control.hidden
      ? `In training each GCD came up ${often}, so there is no other prior to ask it under.`
      : `The model learned how likely each GCD is when it comes up as often as in training. The slider asks the same weights what they would answer if each came up ${often}.${own ? " That is how this run is evaluated." : ""}`;
  }

  show({ candidates, prediction, truth }) {
    this.element.hidden = !this.offered || !candidates;
    const best = candidates?.[0]?.answer;
    this.note.textContent =
      this.share === 0 && best !== prediction
        ? `Token by token it comes to ${answer(prediction)}, although ${answer(best)} is likelier as a whole.`
        : "";
    const kind = (value) => (value !== prediction ? "other" : value === truth ? "right" : "chosen");
    this.bars.replaceChildren(...(candidates ?? []).slice(0, SHOWN).map(({ answer: value, p }) => bar(answer(value), p, kind(value))));
  }
}

// Whether the two priors are the same.
function isFlat(offsets) {
  const finite = offsets.filter((offset) => offset !== null);
  return Math.max(...finite) - Math.min(...finite) < 1e-6;
}
