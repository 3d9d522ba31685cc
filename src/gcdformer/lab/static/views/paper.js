// The paper's tables, published values beside ours, if any were reproduced.

import { paper } from "../api.js";
import { h } from "../dom.js";

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
  for (const table of tables) {
    const columns = [...new Set(table.cells.flatMap((cell) => Object.keys(cell)))];
    place.append(
      h(
        "section",
        { class: "plain" },
        h("h2", { text: table.title ?? table.name }),
        h(
          "div",
          { class: "scroll", tabindex: "0", role: "region", "aria-label": table.name },
          h(
            "table",
            { class: "figures lined" },
            h(
              "thead",
              {},
              h(
                "tr",
                {},
                columns.map((text) => h("th", { scope: "col", text })),
              ),
            ),
            h(
              "tbody",
              {},
              table.cells.map((cell) =>
                h(
                  "tr",
                  {},
                  columns.map((name) => h("td", { text: `${cell[name] ?? "–"}` })),
                ),
              ),
            ),
          ),
        ),
      ),
    );
  }
}
