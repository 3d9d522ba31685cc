// Where the digits 0..B-1 lie in the plane of a prime, coloured by their residue; multiples of the prime have a ring.

import { s, SERIES } from "../dom.js";

const SIZE = 220;
const EDGE = 10;
// The series by hue, so that neighbouring residues of a large prime have neighbouring colours.
const WHEEL = [1, 5, 2, 6, 0, 3, 4].map((index) => SERIES[index]);

export function residueColour(residue, p) {
  if (p <= SERIES.length) return SERIES[residue];
  const turn = (residue / p) * WHEEL.length;
  const index = Math.floor(turn);
  return `color-mix(in srgb, ${WHEEL[(index + 1) % WHEEL.length]} ${Math.round(100 * (turn - index))}%, ${WHEEL[index]})`;
}

export function clockFigure({ digits, points, residues }, p) {
  const at = (value) => SIZE / 2 + (SIZE / 2 - EDGE) * value;
  const dot = ([x, y], index) =>
    s("circle", { cx: at(x).toFixed(1), cy: at(-y).toFixed(1), r: residues[index] ? 2.6 : 3.4, class: residues[index] ? null : "multiple",
        style: { fill: residueColour(residues[index], p) } },
      s("title", { text: `${digits[index]}: residue ${residues[index]}` }));
  return s("svg", { class: "clock", viewBox: `0 0 ${SIZE} ${SIZE}`, role: "img",
      "aria-label": `${digits.length} digits in the plane of ${p}, coloured by residue mod ${p}` },
    points.map(dot));
}

// A row for each digit of each prime.
export const clockRows = (primes) => [
  ["p", "digit", "x", "y", "residue"],
  ...primes.flatMap(({ p, clock: { digits, points, residues } }) => digits.map((digit, index) => [p, digit, ...points[index], residues[index]])),
];
