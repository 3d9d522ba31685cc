// A table or figure of the paper: published values beside ours, learning curves of the ledger, why values differ, the runs.
// On a phone a table of many columns shows one of them, which the address names.

import { paperTable } from "../api.js";
import { capital, command, h, hero, plural, section, SERIES, swatch } from "../dom.js";
import { agreement, agreementLegend, MARKS, total } from "../figures/agreement.js";
import { Curves } from "../figures/curves.js";
import { link, update } from "../route.js";

const MOST_COLUMNS = 3; // side by side on a phone
const FEW = 10; // values per run up to which each value links to its run

const runLink = (name) => h("a", { href: link("ledger", name), text: name });
const TAGS = { run: runLink, code: (text) => h("code", { text }), strong: (text) => h("b", { text }) };

// A line of text with its marked parts.
export const line = (parts) => parts.map((part) => (typeof part === "string" ? part : TAGS[part.kind]?.(part.text) ?? part.text));

export async function tableView(place, id, params) {
  const table = await paperTable(id);
  const facts = table.cells.length > 0;
  const about = [table.budget, table.note && `${capital(table.note)}.`].filter(Boolean).join(" ");
  place.append(
    hero({ crumbs: [h("a", { href: link("paper"), text: "Paper" }), ` / ${table.section}`], title: table.number, lede: table.title },
      facts ? agreement(table.values) : null,
      about ? h("p", { class: "hint", text: about }) : null,
      neighbours(table)),
    table.drawn.length ? figureSection(table, params) : "",
    facts && !besideCurves(table) ? section(null, HEADING, valueTable(table, params)) : "",
    remarks(table) ?? "",
    runs(table) ?? "",
    table.command ? section("plain", "To measure what is missing", command(table.command)) : "",
  );
}

const HEADING = "Published → ours";

// A figure's few facts stand beside its curves, the values of a table below them.
const besideCurves = (table) => table.drawn.length > 0 && table.rows.length === 1;

const neighbours = ({ before, after }) =>
  h("nav", { class: "neighbours", "aria-label": "Tables and figures" },
    before && h("a", { rel: "prev", href: link("paper", before.id), text: `← ${before.number}` }),
    after && h("a", { rel: "next", href: link("paper", after.id), text: `${after.number} →` }));

// The measured learning curves, a colour for each seed; beside them what the paper says of its own.
function figureSection(table, params) {
  const series = table.drawn.map(({ seed, columns }, index) => ({ name: `seed ${seed}`, colour: SERIES[index], columns }));
  const events = table.drawn.length === 1 ? table.drawn[0].prime_powers : null;
  return h("section", { class: "wide" },
    h("div", { class: "side" },
      besideCurves(table) ? [h("h2", { text: HEADING }), valueTable(table, params)] : h("h2", { text: "Measured here" }),
      h("ul", { class: "key" }, table.drawn.map(({ run, seed, measured_as }, index) =>
        h("li", {}, swatch(index), h("a", { href: link("ledger", run), text: `seed ${seed}` }),
          measured_as ? h("small", { text: `measured as ${measured_as}` }) : null)))),
    h("figure", {}, new Curves(series, { axis: "examples", events }).element));
}

// A prediction and its frequency are two columns of the same name; on a phone they stay together.
const groupOf = (column) => column.replace(/ %$/, "");

function valueTable(table, params) {
  const { rows, columns, places } = layout(table);
  const groups = [...new Set(columns.map(groupOf))];
  const chosen = groups.includes(params.get("column")) ? params.get("column") : groups[0];
  const many = columns.length > MOST_COLUMNS;
  const linked = table.cells.filter((cell) => cell.run).length <= FEW * table.runs.length;
  const kind = (column) => (many && groupOf(column) !== chosen ? "other" : null);
  const element = h("table", { class: `figures lined published${many ? " many" : ""}` },
    h("thead", {}, h("tr", {}, h("td", {}), columns.map((column) => h("th", { scope: "col", class: kind(column), "data-column": column, text: column })))),
    h("tbody", {}, rows.map((row) =>
      h("tr", {}, h("th", { scope: "row", text: row }), columns.map((column) =>
        h("td", { class: kind(column), "data-column": column }, valueCell(places.get(`${row}\n${column}`), linked)))))));
  const show = (group) => {
    update({ column: group === groups[0] ? null : group });
    for (const cell of element.querySelectorAll("[data-column]"))
      cell.classList.toggle("other", groupOf(cell.dataset.column) !== group);
  };
  return [
    agreementLegend(),
    many && h("label", { class: "choose-column" }, "Column ",
      h("select", { onchange: (event) => show(event.target.value) },
        groups.map((group) => h("option", { value: group, selected: group === chosen, text: group })))),
    h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": `${table.number}, published and our values` }, element),
  ];
}

// As the paper has it; a single row, or rows that are distributions over other values each, as one column.
function layout({ rows, columns, by_row, cells }) {
  const at = by_row
    ? (cell) => [`${cell.row}, predicted ${groupOf(cell.column)}`, "percent of the pairs"]
    : rows.length === 1 ? (cell) => [cell.column, cell.row] : (cell) => [cell.row, cell.column];
  const heads = (index) => [...new Set(cells.map((cell) => at(cell)[index]))];
  const places = new Map(cells.map((cell) => [at(cell).join("\n"), cell]));
  return by_row || rows.length === 1 ? { rows: heads(0), columns: heads(1), places } : { rows, columns, places };
}

function valueCell(cell, linked) {
  if (!cell) return null;
  const state = cell.ours === null ? "missing" : cell.agrees ? "agree" : "differ";
  const [mark, text] = MARKS[state];
  const ours = cell.ours !== null && (linked && cell.run ? h("a", { href: link("ledger", cell.run), text: cell.ours }) : cell.ours);
  return [
    h("span", { class: "theirs", text: cell.published }), ours ? "\u00a0→ " : " →\u00a0",
    ours ? h("span", { class: "ours" }, ours, "\u00a0") : null,
    h("b", { class: state, role: "img", "aria-label": text, text: mark }),
  ];
}

const remarks = (table) =>
  table.remarks.length
    ? section(null, "Why values differ", h("ul", { class: "remarks" }, table.remarks.map((parts) => h("li", {}, line(parts)))))
    : null;

const runs = (table) =>
  table.runs.length
    ? section(null, "The runs behind it",
        h("details", { open: table.runs.length <= FEW },
          h("summary", { text: plural(table.runs.length, "run") }),
          h("ul", { class: "remarks" }, table.runs.map(({ name, text }) => h("li", {}, runLink(name), `: ${text}`)))))
    : null;
