// True GCD against prediction, both up to 100, as a canvas; the top row holds larger and unreadable answers.

import { colour, h, onWidth } from "../dom.js";

const EDGE = 34;
const TOP = 20;
const SIZE = 101;

export class Heat {
  constructor({ onHover, onChoose }) {
    this.data = null;
    this.hovered = null;
    this.chosen = null;
    this.canvas = h("canvas", {
      role: "img",
      "aria-label": "Heat map: true GCD across, predicted value up; a right answer lies on the diagonal",
    });
    this.canvas.drawOn = (context) => this.paint(context);
    this.element = h("div", { class: "heat" }, this.canvas);
    const kAt = (event) => {
      const x = event.clientX - this.canvas.getBoundingClientRect().left;
      const k = Math.floor((x - EDGE) / this.unit) + 1;
      return k >= 1 && k <= 100 ? k : null;
    };
    this.canvas.addEventListener("pointermove", (event) => onHover(kAt(event)));
    this.canvas.addEventListener("pointerleave", () => onHover(null));
    this.canvas.addEventListener("click", (event) => kAt(event) && onChoose(kAt(event)));
    onWidth(this.element, (width) => {
      this.width = Math.min(width, 620);
      this.draw();
    });
  }

  mark(hovered, chosen) {
    this.hovered = hovered;
    this.chosen = chosen;
    this.draw();
  }

  draw() {
    if (!this.width || !this.data) return;
    const ratio = window.devicePixelRatio || 1;
    const { canvas, width } = this;
    const height = width + TOP;
    if (canvas.width !== Math.round(width * ratio)) {
      canvas.width = Math.round(width * ratio);
      canvas.height = Math.round(height * ratio);
      canvas.style.width = `${width}px`;
      canvas.style.height = `${height}px`;
    }
    const context = canvas.getContext("2d");
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.clearRect(0, 0, width, height);
    this.unit = (width - EDGE - 6) / SIZE;
    this.paint(context);
  }

  // Cells above 100 stand for larger and for unreadable predictions.
  rows() {
    return [["k", "prediction", "share"], ...this.data.cells.map(([k, value, part]) => [k, value > 100 ? "other" : value, part])];
  }

  paint(context) {
    this.axes(context, this.width + TOP);
    const [right, wrong] = [colour("--heat-right"), colour("--heat-wrong")];
    const least = Math.max(this.unit, 2.6);
    for (const [k, value, part] of this.data.cells) {
      context.globalAlpha = Math.sqrt(part);
      context.fillStyle = k === value ? right : wrong;
      context.fillRect(this.x(k) - (least - this.unit) / 2, this.y(value) - (least - this.unit) / 2, least, least);
    }
    context.globalAlpha = 1;
    this.cross(context);
  }

  x(k) {
    return EDGE + (k - 1) * this.unit;
  }

  y(value) {
    return this.width + TOP - EDGE - value * this.unit;
  }

  axes(context, height) {
    context.font = "12px system-ui, sans-serif";
    context.fillStyle = colour("--soft");
    context.strokeStyle = colour("--line");
    context.lineWidth = 1;
    for (const value of [1, 20, 40, 60, 80, 100]) {
      context.beginPath();
      context.moveTo(this.x(value) + this.unit / 2, this.y(101));
      context.lineTo(this.x(value) + this.unit / 2, height - EDGE + 4);
      context.moveTo(EDGE - 4, this.y(value) + this.unit / 2);
      context.lineTo(this.x(101), this.y(value) + this.unit / 2);
      context.stroke();
      context.textAlign = "center";
      context.fillText(`${value}`, this.x(value) + this.unit / 2, height - EDGE + 17);
      context.textAlign = "right";
      context.fillText(`${value}`, EDGE - 8, this.y(value) + this.unit / 2 + 4);
    }
    context.textAlign = "right";
    context.fillText("true GCD k →", this.x(101), height - 3);
    context.textAlign = "left";
    context.fillText("prediction ↑", 2, 12);
  }

  cross(context) {
    const k = this.hovered ?? this.chosen;
    if (!k) return;
    const value = this.data.f.find((cell) => cell.k === k)?.prediction ?? null;
    const row = value !== null && value >= 1 && value <= 100 ? value : 101;
    context.strokeStyle = colour("--accent");
    context.lineWidth = 1.5;
    context.strokeRect(this.x(k) - 1, this.y(101), this.unit + 2, 101 * this.unit);
    context.beginPath();
    context.arc(this.x(k) + this.unit / 2, this.y(row) + this.unit / 2, 7, 0, 2 * Math.PI);
    context.stroke();
  }
}
