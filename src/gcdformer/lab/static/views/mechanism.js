// Where in the network each learned prime is carried: places by primes, ten swaps of one, the clocks, the overlap, the controls.

import { mechanismOf, oneRun } from "../api.js";
import { answer, command, h, hero, section, share, table, whole } from "../dom.js";
import { savedTable } from "../download.js";
import { clockFigure, clockRows, residueColour } from "../figures/clock.js";
import { overlapMatrix, placeName, Places, primeName } from "../figures/matrix.js";
import { integer, link, update } from "../route.js";
import { sharedFigure } from "../share.js";
import { describe, runTitle } from "./words.js";

const VERDICTS = { located: "good", spread: "", "not found": "bad" };
const MOST_RESIDUES = 8;

export async function mechanismView(place, { id, params }) {
  const [{ body: run }, { mechanism, missing, command: words, sentences }] = await Promise.all([oneRun(id), mechanismOf(id)]);
  const crumbs = [h("a", { href: link("runs"), text: "Runs" }), " / ", h("a", { href: link("run", id), text: run.example ? runTitle(run) : run.name }), ` / ${describe(run)}`];
  const lede = "The rules say what the model answers. This is about where in the network the answer comes from. Run (a, b), but at one place put in the value from (a′, b), where a′ differs from a in divisibility by a prime p and in nothing else that the rules look at. Then look at the answer.";
  if (!mechanism) {
    place.append(hero({ crumbs, title: "Where a divisor lives", lede },
      h("p", { class: "missing" }, `${missing} This command finds out and writes mechanism.json into the run's folder:`), command(words)));
    return;
  }
  place.append(
    hero({ crumbs, title: "Where a divisor lives", lede },
      h("p", {}, h("span", { class: `badge ${VERDICTS[mechanism.verdict] ?? ""}`, text: mechanism.verdict }), ` epoch ${mechanism.epoch}, base ${mechanism.base}`)),
    section("plain", "What was found", h("ul", { class: "rules findings" }, sentences.map(finding))));
  if (!mechanism.primes.length) return;
  place.append(placesSection(run, mechanism, params.get("at")), ...clocksSection(run, mechanism, integer(params, "p")), section("plain overlaps", "Do the primes share space?",
    h("p", { text: "How much the subspaces of two primes overlap. 1: the smaller one lies within the other; 0: they are orthogonal; –: they are at different sites." }),
    sharedFigure("overlap", `Overlap of the primes of ${run.name}`, 320, overlapMatrix(mechanism))), controlsSection(mechanism), ...trainingSection(mechanism),
  section("plain", "How to repeat it", command(words)));
}

const finding = (text) => h("li", { class: text.startsWith("Alarm") ? "no" : "yes", text });

// `at` is the cell to begin with, as the address has it.
function placesSection(run, mechanism, at) {
  const detail = h("div", { class: "detail swaps", "aria-live": "polite" });
  const show = (prime, site, position, key) => {
    places.choose(key);
    detail.replaceChildren(...swaps(mechanism, prime, site, position).flat());
  };
  const places = new Places(mechanism, (...cell) => {
    update({ at: cell.at(-1) });
    show(...cell);
  });
  const { p, best } = mechanism.primes[0];
  const cells = places.cells();
  show(...(cells.get(at) ?? cells.get(`${p}|${best.site}|${best.position}`)));
  const all = h("input", { type: "checkbox", id: "all-places", onchange: (event) => places.showAll(event.target.checked) });
  return h("section", { class: "pair" },
    h("div", {},
      h("h2", { text: "Places by primes" }),
      h("p", { text: "Percent of the answers that become what the rules say for the swapped pair. Removes: p divides a, the value comes from an operand that p does not divide. Adds: the other way round. Choose a cell to see swaps." }),
      h("p", {}, h("label", { class: "check" }, all, " also places that move nothing")),
      sharedFigure("places", `Places by primes, ${run.name}`, 600, places,
        h("p", { class: "legend", text: `* does not divide the base ${mechanism.base}. Rows of a site are the tokens of the question.` }))),
    detail);
}

// What a place does for a prime, and what came of the first swaps there.
function swaps(mechanism, prime, site, position) {
  const at = (direction) => prime[direction][site]?.[position] ?? null;
  const said = (value) => (value === null ? "too few pairs to say" : share(value));
  const { best, examples, p } = prime;
  const rows = Object.entries(prime.answers[site]?.[position] ?? {}).map(([number, out]) => {
    const { a, b, swapped, before, expected } = examples[number];
    return [whole(a), whole(b), whole(swapped), before, expected, h("span", { class: out === expected ? "as-said" : "not-as-said", text: answer(out) })];
  });
  return [
    h("h3", { text: `${primeName(prime)} at the ${placeName(mechanism, site, position)}` }),
    h("p", {}, h("code", { text: site }), `: removes ${p} in ${said(at("interchange"))}, adds it in ${said(at("adding"))}.`),
    h("p", { text: `The best place of ${p} is the ${best.name}: ${share(best.share)} (95 %: ${share(best.low)} to ${share(best.high)}, ${best.n} pairs). Verdict: ${prime.verdict}; ${prime.why}.` }),
    prime.powers.length ? h("p", { text: `Its powers: ${prime.powers.map(({ q, verdict }) => `${q} ${verdict}`).join(", ")}.` }) : "",
    h("h3", { text: `${rows.length} swaps at this place that take ${p} away` }),
    savedTable(`Swaps of ${p}`, table(`Swaps of ${p}`, ["a", "b", "value from", "before", "rules say", "came out"], rows)),
  ];
}

// All primes, or the one that the address names.
function clocksSection(run, mechanism, p) {
  const clocks = mechanism.primes.filter((prime) => prime.clock);
  const shown = clocks.some((prime) => prime.p === p) ? clocks.filter((prime) => prime.p === p) : clocks;
  if (!shown.length) return [];
  const figure = (prime) => {
    const { clock, p } = prime;
    const legend = p <= MOST_RESIDUES
      ? Array.from({ length: p }, (_, residue) => h("span", {}, h("i", { class: "dot", style: { background: residueColour(residue, p) } }), `${residue}`))
      : [`${p} residues, round the colours`];
    return h("figure", {}, clockFigure(clock, p),
      h("figcaption", {}, h("b", { text: `${primeName(prime)}, rank ${prime.rank}` }),
        ` Residues explain ${share(clock.share)} of the variance (chance ${share(clock.chance)}), multiple or not: ${share(clock.flag)}, frequency ${clock.frequency}/${p}: ${share(clock.frequency_share)}.`,
        h("span", { class: "legend" }, legend)));
  };
  return [h("section", {}, h("h2", { text: "The clock of each prime" }),
    h("p", { class: "measure", text: `Each dot is a digit in base ${mechanism.base}, in the plane of the prime's subspace, coloured by its residue. Multiples have a ring. A model that has to add residues keeps them apart; one that reads divisibility off one digit needs a flag only.` }),
    sharedFigure("clock", `Clocks of ${run.name}`, 420, { element: h("div", { class: "clocks" }, shown.map(figure)), rows: () => clockRows(shown) }))];
}

// When the place of each prime appeared, beside when the prime entered D; only if several checkpoints were looked at.
function trainingSection({ through_training: history }) {
  const primes = Object.keys(history);
  if (!primes.length) return [];
  const moment = ({ learned, adding, residues }) => `${share(adding)}, ${share(residues)}${learned ? ", in D" : ""}`;
  const rows = history[primes[0]].map(({ epoch }, index) => [epoch, ...primes.map((p) => moment(history[p][index]))]);
  return [section("wide-table", "Through training",
    h("p", { class: "measure", text: "How often all digits of a, exchanged at the final site of the prime, add it, and how much of the variance at its final place the residues of the digits explain." }),
    savedTable("Primes through training", table("Primes through training", ["epoch", ...primes], rows, { lined: true })))];
}

function controlsSection(mechanism) {
  const rows = mechanism.primes.map((prime) => [primeName(prime), share(prime.best.share), share(prime.best.adding), share(prime.whole.adding), share(prime.unchanged),
    share(prime.control), prime.subspace ? share(prime.subspace.permuted) : "–", prime.verdict]);
  const unlearned = mechanism.unlearned.map(({ p, pairs, share: part }) => `${p}: ${share(part)} of ${pairs} pairs`);
  return section("wide-table", "Controls",
    h("p", { class: "measure", text: mechanism.alarms.length ? `Alarm: ${mechanism.alarms.join("; ")}. Nothing above is to be believed.` : "A control that passes is an alarm; none does here. Neutral swaps have to leave the answer as it is. The same network with fresh weights, and subspaces that were fitted to permuted answers, must not follow a swap." }),
    savedTable("Controls", table("Controls", ["p", "removes", "adds", "best set adds", "neutral: stays", "fresh weights", "permuted", "verdict"], rows, { lined: true })),
    unlearned.length ? h("p", { class: "measure", text: `Primes that are not learned, at the same places: ${unlearned.join(", ")}.` }) : null);
}
