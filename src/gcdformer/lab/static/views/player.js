// The epoch slider that drives the run page: play, drag, arrow keys; small marks where D changed.

import { h } from "../dom.js";
import { sentence } from "./words.js";

const TICK = 650;
const SHORTEST_FILM = 6000;

export class Player {
  // onEpoch(epoch) is called for every change; ready(epoch) resolves when its data is there.
  constructor(run, { onEpoch, ready }) {
    this.onEpoch = onEpoch;
    this.ready = ready;
    this.timer = null;
    this.button = h("button", { type: "button", class: "play", onclick: () => this.toggle() });
    this.slider = h("input", {
      type: "range",
      id: "epoch",
      min: 1,
      step: 1,
      "aria-label": "Epoch",
      oninput: () => {
        this.stop();
        onEpoch(Number(this.slider.value));
      },
    });
    this.marks = h("div", { class: "marks", "aria-hidden": "true" });
    this.count = h("output", { class: "epoch-count", for: "epoch" });
    this.event = h("p", { class: "epoch-event" });
    this.element = h(
      "div",
      { class: "player", role: "group", "aria-label": "Epoch" },
      this.button,
      h("div", { class: "track" }, this.marks, this.slider),
      this.count,
      this.event,
    );
    this.update(run);
    this.drawButton();
  }

  update(run) {
    this.run = run;
    this.epochs = run.columns.epoch;
    this.slider.max = Math.max(1, this.epochs.length);
    const steps = run.timeline?.steps ?? [];
    this.marks.replaceChildren(
      ...steps.map((step) =>
        h("i", {
          class: step.entered.length ? "" : "lost",
          style: { left: `${(100 * (step.epoch - 1)) / Math.max(1, this.epochs.length - 1)}%` },
        }),
      ),
    );
    if (this.epoch) this.show(this.epoch);
  }

  show(epoch) {
    this.epoch = epoch;
    this.slider.value = epoch;
    this.slider.setAttribute("aria-valuetext", `epoch ${epoch} of ${this.epochs.length}`);
    this.count.replaceChildren("epoch ", h("b", { text: `${epoch}` }), ` of ${this.epochs.length}`);
    const step = this.run.timeline?.steps.find((change) => change.epoch === epoch);
    this.event.textContent = step ? sentence(step) : "D did not change at this epoch.";
  }

  toggle() {
    if (this.timer !== null) this.stop();
    else this.start();
  }

  start() {
    let next = this.epoch >= this.epochs.length ? 1 : this.epoch + 1;
    const pause = Math.min(TICK, Math.max(40, SHORTEST_FILM / this.epochs.length));
    const turn = async () => {
      await this.ready(next).catch(() => null);
      if (this.timer === null) return;
      this.onEpoch(next);
      if (next >= this.epochs.length) {
        this.stop();
        return;
      }
      next += 1;
      this.timer = setTimeout(turn, pause);
    };
    this.timer = setTimeout(turn, 0);
    this.drawButton();
  }

  stop() {
    clearTimeout(this.timer);
    this.timer = null;
    this.drawButton();
  }

  drawButton() {
    const playing = this.timer !== null;
    this.button.textContent = playing ? "❚❚" : "▶";
    this.button.setAttribute("aria-label", playing ? "Pause" : "Play: watch the sieve grow");
    this.button.title = playing ? "Pause (space)" : "Play (space)";
  }
}
