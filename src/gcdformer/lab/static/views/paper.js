// The paper's tables, published values beside ours, if any were reproduced. Reasons are notes below their table.

import { paper } from "../api.js";
import { h, minutes } from "../dom.js";

export async function paperView(place) {
  const { tables } = await paper();
  place.append(
    h(
      "div",
      { class: "hero" },
      h("h1", { text: "The paper, reproduced" }),
      h(
        "p",
        { class: "lede" },
        "François Charton, ",
        h("em", { text: "Learning the greatest common divisor: explaining transformer predictions" }),
        ", ICLR 2024. Its finding: at any moment the model knows a set D of integers, products of a few prime powers, and answers the largest element of D that divides both operands.",
      ),
    ),
  );
  if (!tables.length) {
    place.append(
      h(
        "section",
        { class: "plain" },
        h("h2", { text: "No tables yet" }),
        h("p", {
          text: "No table of the paper has been reproduced here yet, so there is nothing to set beside the published values.",
        }),
      ),
    );
    return;
  }
  place.append(contents(tables), ...tables.map(tableSection));
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
  return h(
    "ul",
    { class: "contents" },
    tables.map((table) =>
      h(
        "li",
        {},
        h("a", { href: `#${anchor(table)}`, onclick: (event) => jump(event, table), text: title(table) }),
        h("small", { text: ` ${table.cells.length} value${table.cells.length > 1 ? "s" : ""}` }),
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
          { scope: key === "row" ? "row" : null, class: key === "ours" ? "ours" : null },
          cell[key] === null || cell[key] === undefined ? "–" : `${text(cell)}`,
          key === "difference" && cell.why ? h("sup", { text: ` ${notes.indexOf(cell.why) + 1}` }) : null,
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
        h("thead", {}, h("tr", {}, columns.map(([text]) => (text ? h("th", { scope: "col", text }) : h("td", {}))))),
        h("tbody", {}, table.cells.map(row)),
      ),
    ),
    notes.length ? h("ol", { class: "notes" }, notes.map((text) => h("li", { text }))) : null,
  ];
  const count = table.cells.length;
  return h(
    "section",
    { class: "paper-table" },
    h("h2", { id: anchor(table), tabindex: "-1", text: title(table) }),
    h("p", {
      class: "hint",
      text: `${table.label}: ${count} of ${table.published} published values measured or computed here.${table.note ? ` ${table.note.text}.` : ""}`,
    }),
    count > LONG ? h("details", {}, h("summary", { text: `Show the ${count} values` }), ...values) : values,
  );
}
