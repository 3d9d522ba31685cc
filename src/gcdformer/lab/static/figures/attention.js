// Attention maps: for each layer and head, which token (down) looks at which (across).

import { h, s, share } from "../dom.js";

const CELL = 26;

const word = (token) => ({ "<begin>": "start", "<end>": "end" })[token] ?? token;

function head(pattern, rows, columns, name) {
  const left = 8 + 7.2 * Math.max(...rows.map((token) => word(token).length));
  const top = 8 + 6.2 * Math.max(...columns.map((token) => word(token).length));
  const [width, height] = [left + columns.length * CELL + 4, top + rows.length * CELL + 4];
  const svg = s("svg", {
    viewBox: `0 0 ${width} ${height}`,
    width,
    height,
    role: "img",
    "aria-label": `${name}: ${rows.map((token, row) => `${word(token)} looks most at ${word(columns[pattern[row].indexOf(Math.max(...pattern[row]))])}`).join("; ")}`,
  });
  columns.forEach((token, column) =>
    svg.append(
      s("text", {
        class: "token-label",
        transform: `translate(${left + (column + 0.5) * CELL + 4} ${top - 4}) rotate(-90)`,
        text: word(token),
      }),
    ),
  );
  rows.forEach((token, row) => {
    svg.append(
      s("text", {
        class: "token-label",
        x: left - 5,
        y: top + (row + 0.5) * CELL + 4,
        "text-anchor": "end",
        text: word(token),
      }),
    );
    pattern[row].forEach((value, column) =>
      svg.append(
        s(
          "rect",
          {
            class: "attention-cell",
            x: left + column * CELL,
            y: top + row * CELL,
            width: CELL - 2,
            height: CELL - 2,
            rx: 3,
            style: { "--value": value.toFixed(3) },
          },
          s("title", { text: `${word(token)} looks at ${word(columns[column])}: ${share(value)}` }),
        ),
      ),
    );
  });
  return svg;
}

function group(title, says, layers, rows, columns) {
  return h(
    "div",
    { class: "attention-group" },
    h("h3", { text: title }),
    h("p", { text: says }),
    layers.map((layer, number) =>
      h(
        "div",
        { class: "heads" },
        layer.map((pattern, index) =>
          h(
            "figure",
            {},
            head(pattern, rows, columns, `layer ${number + 1}, head ${index + 1}`),
            h("figcaption", { text: layers.length > 1 ? `layer ${number + 1}, head ${index + 1}` : `head ${index + 1}` }),
          ),
        ),
      ),
    ),
  );
}

export function attentionMaps(found) {
  const fed = ["<begin>", ...found.output.slice(0, -1)];
  const { encoder, decoder, cross } = found.attention;
  return [
    group(
      "The decoder reads the operands",
      "Rows are the tokens fed to the decoder, columns the tokens of a and b. The row of a token shows what it looks at to choose the next one.",
      cross,
      fed,
      found.input,
    ),
    group(
      "The operands look at each other",
      "Each token of a and b, and which tokens it draws on.",
      encoder,
      found.input,
      found.input,
    ),
    group("The answer looks back at itself", "Tokens of the answer see only those before them.", decoder, fed, fed),
  ];
}

// How much each input token is looked at when each output token is chosen: the mean over layers and heads.
export function meanCross(found) {
  if (!found.attention) return null;
  const heads = found.attention.cross.flat();
  return found.output.map((_, row) =>
    found.input.map((__, column) => heads.reduce((sum, one) => sum + one[row][column], 0) / heads.length),
  );
}
