// Fidelity in bands of size and order: a bar for each from 0 to 100 %, its 95 % interval as a line, a mark where enough is told.

import { h } from "../dom.js";

const part = (value) => value.toFixed(4);

export const bandsFigure = ({ bands, wanted }) =>
  h("div", { class: "band-bars", role: "img", style: { "--wanted": part(wanted) },
      "aria-label": `Fidelity by size and order: ${bands.map((band) => `${band.name} ${band.shown}`).join("; ")}` },
    bands.map(({ name, mark, fidelity: { value, low, high } }) => [
      h("span", { class: "band-name", text: name }),
      h("span", { class: `band-bar ${mark}`, style: { "--value": part(value), "--low": part(low), "--high": part(high) } },
        h("i", { class: "told" }), h("i", { class: "interval" }), h("i", { class: "wanted" })),
    ]));
