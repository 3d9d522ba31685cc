// D over time: a row for each k, a column for each epoch, as a canvas. A click chooses the epoch.

import { colour, h, onWidth } from "../dom.js";

const LEFT = 34;
const ROW = 4;

export class History {
  constructor(run, { onEpoch, onHover }) {
    this.run = run;
    this.epoch = null;
    this.k = null;
    this.canvas = h("canvas", {
      role: "img",
      "aria-label": "D over time: for each k the epochs at which it was correct",
    });
    this.canvas.drawOn = (context) => this.blocks(context);
    this.element = h("div", { class: "history" }, this.canvas);
    const place = (event) => {
      const box = this.canvas.getBoundingClientRect();
      const column = Math.floor((event.clientX - box.left - LEFT) / this.step);
      const k = 100 - Math.floor((event.clientY - box.top) / ROW);
      return {
        epoch: this.run.columns.epoch[Math.max(0, Math.min(this.run.columns.epoch.length - 1, column))],
        k: k >= 1 && k <= 100 ? k : null,
      };
    };
    this.canvas.addEventListener("click", (event) => onEpoch(place(event).epoch));
    this.canvas.addEventListener("pointermove", (event) => onHover(place(event).k));
    this.canvas.addEventListener("pointerleave", () => onHover(null));
    onWidth(this.element, (width) => {
      this.width = width;
      this.paint();
    });
  }

  update(run) {
    this.run = run;
    this.paint();
  }

  mark(epoch, k) {
    if (this.epoch === epoch && this.k === k) return;
    this.epoch = epoch;
    this.k = k;
    this.draw();
  }

  // The picture is painted once; moving the cursor only copies it.
  paint() {
    const epochs = this.run.columns.epoch;
    if (!this.width || !epochs.length) return;
    this.ratio = window.devicePixelRatio || 1;
    this.height = 100 * ROW + 24;
    this.step = (this.width - LEFT - 8) / epochs.length;
    this.picture = h("canvas", {});
    for (const canvas of [this.canvas, this.picture]) {
      canvas.width = Math.round(this.width * this.ratio);
      canvas.height = Math.round(this.height * this.ratio);
    }
    this.canvas.style.width = `${this.width}px`;
    this.canvas.style.height = `${this.height}px`;
    const context = this.picture.getContext("2d");
    context.scale(this.ratio, this.ratio);
    this.blocks(context);
    this.draw();
  }

  rows() {
    const { columns, D, nearly } = this.run;
    const line = (epoch, column) => [...D[column].map((k) => [epoch, k, "correct"]), ...nearly[column].map((k) => [epoch, k, "being learned"])];
    return [["epoch", "k", "state"], ...columns.epoch.flatMap(line)];
  }

  blocks(context) {
    context.font = "12px system-ui, sans-serif";
    context.fillStyle = colour("--soft");
    context.strokeStyle = colour("--line");
    context.textAlign = "right";
    for (const k of [1, 20, 40, 60, 80, 100]) {
      const y = (100 - k) * ROW + ROW / 2;
      context.fillText(`${k}`, LEFT - 8, Math.max(10, y + 4));
      context.beginPath();
      context.moveTo(LEFT, y);
      context.lineTo(this.width - 8, y);
      context.stroke();
    }
    const [power, known, nearly] = [colour("--history-power"), colour("--history-known"), colour("--history-nearly")];
    this.run.columns.epoch.forEach((epoch, column) => {
      const x = LEFT + column * this.step;
      for (const k of this.run.nearly[column]) this.block(context, x, k, nearly);
      for (const k of this.run.D[column]) this.block(context, x, k, k in this.run.timeline.prime_powers ? power : known);
    });
    context.fillStyle = colour("--soft");
    context.fillText("k ↑", LEFT - 8, this.height - 4);
    context.fillText("epoch →", this.width - 8, this.height - 4);
  }

  block(context, x, k, paint) {
    context.fillStyle = paint;
    context.fillRect(x, (100 - k) * ROW, Math.max(this.step - (this.step > 5 ? 1 : 0), 0.6), ROW - 0.7);
  }

  draw() {
    if (!this.picture) return;
    const context = this.canvas.getContext("2d");
    context.setTransform(1, 0, 0, 1, 0, 0);
    context.clearRect(0, 0, this.canvas.width, this.canvas.height);
    context.drawImage(this.picture, 0, 0);
    context.setTransform(this.ratio, 0, 0, this.ratio, 0, 0);
    context.strokeStyle = colour("--accent");
    context.lineWidth = 1.5;
    const column = this.run.columns.epoch.indexOf(this.epoch);
    if (column >= 0) context.strokeRect(LEFT + column * this.step - 1, 0.75, Math.max(this.step, 2) + 1, 100 * ROW);
    if (this.k) context.strokeRect(LEFT, (100 - this.k) * ROW - 1, this.width - LEFT - 8, ROW + 1.5);
  }
}

export const historyLegend = (run) =>
  h(
    "p",
    { class: "legend" },
    ...[
      ["power", "correct, a prime power"],
      ["known", "correct"],
      ...("last" in run ? [] : [["nearly", "being learned"]]),
    ].map(([name, text]) => h("span", {}, h("i", { class: `swatch history-${name}` }), text)),
  );
