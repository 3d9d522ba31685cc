// A curve the size of a word.

import { s } from "../dom.js";

export function spark(points, top, { width = 110, height = 28 } = {}) {
  if (points.length === 0) return s("svg", { class: "spark", viewBox: `0 0 ${width} ${height}`, "aria-hidden": "true" });
  const last = points[points.length - 1];
  const x = (epoch) => 3 + ((epoch - points[0][0]) / Math.max(1, last[0] - points[0][0])) * (width - 8);
  const y = (value) => height - 3 - (value / top) * (height - 7);
  const path = points
    .map(([epoch, value], index) =>
      index === 0 ? `M${x(epoch).toFixed(1)} ${y(value).toFixed(1)}` : `H${x(epoch).toFixed(1)}V${y(value).toFixed(1)}`,
    )
    .join("");
  return s(
    "svg",
    { class: "spark", viewBox: `0 0 ${width} ${height}`, "aria-hidden": "true" },
    s("path", { class: "spark-area", d: `${path}V${height - 3}H3Z` }),
    s("path", { class: "spark-line", d: path }),
    s("circle", { class: "spark-end", cx: x(last[0]), cy: y(last[1]), r: 2.2 }),
  );
}
