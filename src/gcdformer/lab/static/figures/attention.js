// Attention maps: for each layer and head, which token (down) looks at which (across).

import { h, s, share } from "../dom.js";

const CELL = 26;

const word = (token) => ({ "<begin>": "start", "<end>": "end" })[token] ?? token;
const longest = (tokens) => Math.max(...tokens.map((token) => word(token).length));

function head(pattern, rows, columns, name) {
  const left = 8 + 7.2 * longest(rows);
  const top = 8 + 6.2 * longest(columns);
  const [width, height] = [left + columns.length * CELL + 4, top + rows.length * CELL + 4];
  const most = (row) => word(columns[pattern[row].indexOf(Math.max(...pattern[row]))]);
  const label = `${name}: ${rows.map((token, row) => `${word(token)} looks most at ${most(row)}`).join("; ")}`;
  const text = (attributes, token) => s("text", { class: "token-label", ...attributes, text: word(token) });
  const cell = (value, row, column) =>
    s("rect",
      { class: "attention-cell", x: left + column * CELL, y: top + row * CELL, width: CELL - 2, height: CELL - 2, rx: 3, style: { "--value": value.toFixed(3) } },
      s("title", { text: `${word(rows[row])} looks at ${word(columns[column])}: ${share(value)}` }));
  return s("svg", { viewBox: `0 0 ${width} ${height}`, width, height, role: "img", "aria-label": label },
    columns.map((token, column) => text({ transform: `translate(${left + (column + 0.5) * CELL + 4} ${top - 4}) rotate(-90)` }, token)),
    rows.map((token, row) => [
      text({ x: left - 5, y: top + (row + 0.5) * CELL + 4, "text-anchor": "end" }, token),
      pattern[row].map((value, column) => cell(value, row, column)),
    ]));
}

function group(title, says, layers, rows, columns) {
  const figure = (pattern, layer, index) => {
    const name = `layer ${layer + 1}, head ${index + 1}`;
    return h("figure", {}, head(pattern, rows, columns, name), h("figcaption", { text: layers.length > 1 ? name : `head ${index + 1}` }));
  };
  return h("div", { class: "attention-group" }, h("h3", { text: title }), h("p", { text: says }),
    layers.map((heads, layer) => h("div", { class: "heads" }, heads.map((pattern, index) => figure(pattern, layer, index)))));
}

export function attentionMaps({ input, output, attention }) {
  const fed = ["<begin>", ...output.slice(0, -1)];
  const { encoder, decoder, cross } = attention;
  return [
    group("The decoder reads the operands",
      "Rows are the tokens fed to the decoder, columns the tokens of a and b. The row of a token shows what it looks at to choose the next one.",
      cross, fed, input),
    group("The operands look at each other", "Each token of a and b, and which tokens it draws on.", encoder, input, input),
    group("The answer looks back at itself", "Tokens of the answer see only those before them.", decoder, fed, fed),
  ];
}

// The same as rows of a CSV, its heads first.
export function attentionRows({ input, output, attention }) {
  const fed = ["<begin>", ...output.slice(0, -1)];
  const kinds = { cross: [fed, input], encoder: [input, input], decoder: [fed, fed] };
  const rows = Object.entries(kinds).flatMap(([kind, [from, to]]) =>
    attention[kind].flatMap((heads, layer) =>
      heads.flatMap((pattern, index) =>
        pattern.flatMap((values, row) => values.map((value, column) => [kind, layer + 1, index + 1, row, from[row], column, to[column], value])))));
  return [["attention", "layer", "head", "row", "looks", "column", "at", "share"], ...rows];
}

// How much each input token is looked at when each output token is chosen: the mean over layers and heads.
export function meanCross(asked) {
  if (!asked.attention) return null;
  const heads = asked.attention.cross.flat();
  return asked.output.map((_, row) =>
    asked.input.map((__, column) => heads.reduce((sum, pattern) => sum + pattern[row][column], 0) / heads.length),
  );
}
