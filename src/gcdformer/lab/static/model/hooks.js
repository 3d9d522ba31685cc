// Hook points: named places whose values can be read and replaced while the model runs; docs/HOOKS.md lists the names. A
// value has the shape that is written there without its N: one question is asked at a time. Knows no layers.

import { refuse, shown } from "./errors.js";

// The names of `points` that any of these globs (with * and ?) matches, in the model's order; each glob must match one.
export function chosenNames(points, globs) {
  const wanted = new Set();
  for (const glob of typeof globs === "string" ? [globs] : globs) {
    const escaped = String(glob).replace(/[.+^${}()|[\]\\]/g, "\\$&");
    const pattern = new RegExp(`^${escaped.replace(/\*+/g, ".*").replace(/\?/g, ".")}$`);
    const matching = points.filter(({ name }) => pattern.test(name));
    if (!matching.length) refuse(unknown(glob, points));
    matching.forEach(({ name }) => wanted.add(name));
  }
  return points.map(({ name }) => name).filter((name) => wanted.has(name));
}

const unknown = (name, points) =>
  `hook point: none is called ${shown(name)}; they are ${points.map((point) => point.name).join(", ")}`;

const size = (shape) => shape.reduce((product, length) => product * length, 1);

export class Hooks {
  // `patches` maps names to a Float32Array, or to a function of the value and {name, shape, start} that returns the value to
  // take its place (or nothing); `start` is the position of the first row.
  constructor(points, patches, recording) {
    this.points = points;
    this.recording = recording;
    this.records = new Map();
    this.patches = new Map(Object.entries(patches ?? {}));
    for (const [name, patch] of this.patches) {
      const point = points.find((one) => one.name === name) ?? refuse(unknown(name, points));
      if (point.readOnly) refuse(`${name}: can be read but not patched, since nothing reads it afterwards`);
      if (typeof patch !== "function" && !ArrayBuffer.isView(patch))
        refuse(`${name}: a patch is a Float32Array or a function, got ${shown(patch)}`);
    }
  }

  // The first values of `buffer` are the value of this point: replace and record them.
  visit(name, buffer, shape, start) {
    const count = size(shape);
    const patch = this.patches.get(name);
    if (patch !== undefined) {
      const value = typeof patch === "function" ? patch(buffer.slice(0, count), { name, shape, start }) : patch;
      if (value !== undefined && value !== null) {
        if (value.length !== count)
          refuse(`${name}: a patch of shape ${shown(shape)}, got ${shown(value.length)} values`);
        buffer.set(value);
      }
    }
    if (!this.recording) return;
    if (!this.records.has(name)) this.records.set(name, []);
    this.records.get(name).push({ shape, values: buffer.slice(0, count) });
  }

  // The same patches, nothing recorded.
  withoutRecords() {
    return new Hooks(this.points, Object.fromEntries(this.patches), false);
  }

  // {name: {shape, values}} of what was recorded, the steps of decoding put together.
  cache(globs = "*") {
    return Object.fromEntries(chosenNames(this.points, globs).map((name) => [name, joined(this.records.get(name))]));
  }
}

// The values of several steps as those of one pass: rows one after another; patterns (H, T, S) with 0 for keys that a step
// did not have yet.
function joined(parts) {
  if (parts.length === 1) return parts[0];
  const last = parts[parts.length - 1].shape;
  const patterns = last.length === 3;
  const [heads, width] = [patterns ? last[0] : 1, last[last.length - 1]];
  const rows = parts.reduce((total, { shape }) => total + shape[shape.length - 2], 0);
  const values = new Float32Array(heads * rows * width);
  let start = 0;
  for (const part of parts) {
    const [count, length] = part.shape.slice(-2);
    for (let h = 0; h < heads; h += 1)
      for (let t = 0; t < count; t += 1) {
        const from = (h * count + t) * length;
        values.set(part.values.subarray(from, from + length), (h * rows + start + t) * width);
      }
    start += count;
  }
  return { shape: patterns ? [heads, rows, width] : [rows, width], values };
}
