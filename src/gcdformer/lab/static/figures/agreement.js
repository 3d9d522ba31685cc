// How many published values ours agree with, differ from, or are missing for: a small bar and the same in words.

import { h, share, whole } from "../dom.js";

const KINDS = ["agree", "differ", "missing"];
export const MARKS = { agree: ["✓", "agrees"], differ: ["≠", "differs"], missing: ["·", "is missing"] };

export const total = (values) => KINDS.reduce((sum, kind) => sum + values[kind], 0);

export function inWords(values) {
  const all = total(values);
  const rest = KINDS.slice(1).filter((kind) => values[kind]).map((kind) => `, ${whole(values[kind])} ${kind}`);
  return `${whole(values.agree)} of ${whole(all)} agree (${share(values.agree / all)})${rest.join("")}`;
}

export const agreement = (values) =>
  h("div", { class: "agreement" },
    h("span", { class: "agreement-bar", "aria-hidden": "true" },
      KINDS.filter((kind) => values[kind]).map((kind) => h("i", { class: kind, style: { "--count": values[kind] } }))),
    h("span", { class: "agreement-words", text: inWords(values) }));

export const agreementLegend = () =>
  h("p", { class: "legend" },
    KINDS.map((kind) => h("span", {}, h("i", { class: `agreement-key ${kind}` }), h("b", { class: kind, "aria-hidden": "true", text: MARKS[kind][0] }), ` ${MARKS[kind][1]}`)));
