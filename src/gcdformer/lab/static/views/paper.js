// The paper: its claims with their verdicts, its figures, and its tables with published values beside ours, where any were
// measured. Reasons are notes below their table.

import { paper } from "../api.js";
import { h, hero, minutes, plural, section, SERIES, swatch } from "../dom.js";
import { Curves } from "../figures/curves.js";

export async function paperView(place) {
  const { claims, tables } = await paper();
  place.append(
    hero({
      title: "The paper, reproduced",
      lede: [
        "François Charton, ",
        h("em", { text: "Learning the greatest common divisor: explaining transformer predictions" }),
        ", ICLR 2024. Its finding: at any moment the model knows a set D of integers, products of a few prime powers, and predicts the largest element of D that divides both operands.",
      ],
    }),
  );
  if (!tables.length) {
    const none = "No table of the paper has been reproduced here yet, so there is nothing to set beside the published values.";
    place.append(section("plain", "No tables yet", h("p", { text: none })));
    return;
  }
  place.append(claimsSection(claims), contents(tables), ...tables.map(tableSection));
}

const VERDICTS = { holds: "good", "does not hold": "bad" };

function claimsSection(claims) {
  const held = claims.filter((claim) => claim.verdict === "holds").length;
  return section(
    "claims",
    "What it claims",
    h("p", { text: `In our words, each judged by the runs that were measured here: ${held} of ${claims.length} hold.` }),
    h(
      "ul",
      {},
      claims.map((claim) =>
        h(
          "li",
          {},
          h("p", {}, claim.statement),
          h("p", {}, h("span", { class: `badge ${VERDICTS[claim.verdict] ?? ""}`, text: claim.verdict }), claim.count),
          h(
            "details",
            {},
            h("summary", { text: "Evidence" }),
            h("p", { class: "hint", text: `Counted: ${claim.unit}, ${claim.rule}.` }),
            h("ul", { class: "evidence" }, claim.evidence.map((text) => h("li", { text }))),
          ),
        ),
      ),
    ),
  );
}

const title = (table) => table.title ?? table.name;
const anchor = (table) => `table-${table.name}`;

// Links within the page; the address stays the state of the view.
function contents(tables) {
  const jump = (event, table) => {
    event.preventDefault();
    const heading = document.getElementById(anchor(table));
    heading.scrollIntoView();
    heading.focus({ preventScroll: true });
  };
  const counted = (values, noun) => (values.length ? [plural(values.length, noun)] : []);
  const size = (table) => [...counted(table.cells, "value"), ...counted(table.curves, "curve")].join(", ");
  return section(
    null,
    "Its tables and figures",
    h(
      "ul",
      { class: "contents" },
      tables.map((table) =>
        h(
          "li",
          {},
          h("a", { href: `#${anchor(table)}`, onclick: (event) => jump(event, table), text: title(table) }),
          h("small", { text: ` ${size(table)}` }),
        ),
      ),
    ),
  );
}

// The measured learning curves of a figure, a colour for each seed.
function figure({ curves }) {
  const runs = curves.map(({ seed, columns }, index) => ({ name: `seed ${seed}`, colour: SERIES[index], columns }));
  const events = curves.length === 1 ? curves[0].prime_powers : null;
  return h(
    "figure",
    {},
    new Curves(runs, { axis: "examples", events }).element,
    h(
      "figcaption",
      { class: "legend" },
      curves.map(({ run, seed, measured_as }, index) =>
        h(
          "span",
          {},
          swatch(index),
          `seed ${seed}: ${run}${measured_as ? `, measured as ${measured_as}` : ""}`,
        ),
      ),
    ),
  );
}

const LONG = 30;
const COLUMNS = [
  ["", "row", (cell) => cell.row],
  ["", "column", (cell) => cell.column],
  ["published", "published", (cell) => cell.published],
  ["ours", "ours", (cell) => cell.ours],
  ["difference", "difference", (cell) => signed(cell.difference)],
  ["trained for", "minutes", (cell) => minutes(60 * cell.minutes)],
  ["seeds", "seeds", (cell) => cell.seeds],
];

const signed = (value) => `${value > 0 ? "+" : value < 0 ? "−" : ""}${Number(Math.abs(value).toFixed(2))}`;

function tableSection(table) {
  const notes = [...new Set(table.cells.map((cell) => cell.why).filter(Boolean))];
  const columns = COLUMNS.filter(([, key]) => table.cells.some((cell) => cell[key] !== null && cell[key] !== undefined));
  const row = (cell) =>
    h(
      "tr",
      {},
      columns.map(([, key, text]) =>
        h(
          key === "row" ? "th" : "td",
          { scope: key === "row" ? "row" : null, class: `col-${key}` },
          cell[key] === null || cell[key] === undefined ? "–" : `${text(cell)}`,
          key === "ours" && cell.why ? h("sup", { text: ` ${notes.indexOf(cell.why) + 1}` }) : null,
        ),
      ),
    );
  const values = [
    h(
      "div",
      { class: "scroll", tabindex: "0", role: "region", "aria-label": title(table) },
      h(
        "table",
        { class: "figures lined" },
        h("thead", {}, h("tr", {}, columns.map(([text, key]) => h(text ? "th" : "td", { scope: text ? "col" : null, class: `col-${key}`, text })))),
        h("tbody", {}, table.cells.map(row)),
      ),
    ),
    notes.length ? h("ol", { class: "notes" }, notes.map((text) => h("li", { text }))) : null,
  ];
  const count = table.cells.length;
  const measured = count ? `: ${count} of ${table.published} published values measured or computed here` : "";
  return h(
    "section",
    { class: "paper-table" },
    h("h2", { id: anchor(table), tabindex: "-1", text: title(table) }),
    h("p", {
      class: "hint",
      text: `${[table.number, table.label].filter(Boolean).join(", ")}${measured}.${table.note ? ` ${table.note.text}.` : ""}`,
    }),
    table.curves.length ? figure(table) : null,
    count === 0 ? null : count > LONG ? h("details", {}, h("summary", { text: `Show the ${count} values` }), ...values) : values,
  );
}
