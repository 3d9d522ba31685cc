// The paper: an index of its claims and of its tables and figures, in its order; a claim; the rest is in paper_table.js.
// The address says which: #/paper, #/paper/table-2, #/paper/claim-mixture.

import { paper, paperClaim } from "../api.js";
import { capital, h, hero, plural, section } from "../dom.js";
import { agreement, agreementLegend, total } from "../figures/agreement.js";
import { link } from "../route.js";
import { line, tableView } from "./paper_table.js";

const CLAIM = "claim-";
const VERDICTS = { holds: "good", "does not hold": "bad" };
const badge = (verdict) => h("span", { class: `badge ${VERDICTS[verdict] ?? ""}`, text: verdict });

export async function paperView(place, { id, params }) {
  if (id === null) index(place, await paper());
  else if (id.startsWith(CLAIM)) claimView(place, await paperClaim(id.slice(CLAIM.length)));
  else await tableView(place, id, params);
}

function index(place, { values, runs, claims, sections }) {
  const held = claims.filter((claim) => claim.verdict === "holds").length;
  place.append(
    hero({
      title: "The paper, reproduced",
      lede: [
        "François Charton, ",
        h("em", { text: "Learning the greatest common divisor: explaining transformer predictions" }),
        ", ICLR 2024. Its finding: at any moment the model knows a set D of integers, products of a few prime powers, and predicts the largest element of D that divides both operands.",
      ],
    },
      h("p", { text: `Every published value beside ours, from ${plural(runs, "measured run")}:` }),
      agreement(values)),
    section("claims", "What it claims",
      h("p", { text: `In our words, each judged by the runs that were measured here: ${held} of ${claims.length} hold.` }),
      h("ul", {}, claims.map((claim) =>
        h("li", {},
          h("p", {}, h("a", { href: link("paper", CLAIM + claim.name), text: claim.statement })),
          h("p", {}, badge(claim.verdict), h("small", { text: claim.count })))))),
    h("section", { class: "contents" },
      h("h2", { text: "Its tables and figures" }),
      agreementLegend(),
      sections.map((part) => [
        h("h3", { text: `${part.number} ${part.title}` }),
        h("ul", {}, part.tables.map(contentsItem)),
      ])),
  );
}

const contentsItem = (table) =>
  h("li", {},
    h("a", { href: link("paper", table.id) }, h("b", { text: table.number }), ` ${table.title}`),
    total(table.values) ? agreement(table.values) : h("small", { text: table.curves ? plural(table.curves, "curve") : "no curve yet" }));

function claimView(place, claim) {
  place.append(
    hero({ crumbs: [h("a", { href: link("paper"), text: "Paper" }), " / a claim"], title: claim.statement },
      h("p", {}, badge(claim.verdict), claim.count)),
    section("plain", "What is counted", h("p", { text: `${capital(claim.unit)}: ${claim.rule}.` })),
    h("section", {},
      h("h2", { text: "Evidence" }),
      h("ul", { class: "remarks" }, claim.evidence.map((parts) => h("li", {}, line(parts))))),
  );
}
