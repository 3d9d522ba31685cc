// The sentences and tables beside the pictures of a run.

import { answer, bar, capital, factors, h, list, millions, minutes, percent, plural, product, share, table, whole } from "../dom.js";
import { link } from "../route.js";
import { priorWords } from "./switch.js";

const MODELS = { transformer: "A transformer", lstm: "An LSTM", gru: "A GRU" };

export function runTitle(run) {
  if (!run.example) return run.name;
  const isGrokked = (q) => run.base % q && factors(q)[0][1] === 1;
  const grokked = Object.keys(run.timeline.prime_powers).filter((q) => Number(q) > 1 && isGrokked(Number(q)));
  return grokked.length ? `${list(grokked)} grokked in base ${run.base}` : `The sieve in base ${run.base}`;
}

export const describe = (run) => `${run.model}, seed ${run.seed}, ${run.examples_from}`;

// A timeline's sentence without the epoch, which stands beside it.
export const sentence = (step) => `${capital(step.text.replace(/^epoch \d+: /, "")).replaceAll("->", "→")}.`;

export function lede(run, data) {
  const { columns } = run;
  const index = data.epoch - 1;
  const right = data.accuracy.measured;
  const how = data.prior === run.priors.own ? "" : `, its answers decided under ${priorWords(run, data.prior)}`;
  return [
    `${MODELS[run.family] ?? "A model"} reads two integers up to ${whole(run.maximum)}, written in base ${run.base}, and has to predict their greatest common divisor. `,
    h("strong", {
      text: `After epoch ${columns.epoch[index]} (${millions(columns.examples[index])} examples, ${minutes(columns.seconds[index])}) it is right for ${percent(right)} of random pairs${how}`,
    }),
    `${right > 50 ? ", although it knows only" : " and knows"} ${data.D.length} of the first 100 GCD.${"last" in run ? "" : " Drag the slider, or press play, to watch the set grow."}`,
  ];
}

// Of answers that were not simply the likeliest ones.
export const decidedNote = (run, { prior }) =>
  prior === "training"
    ? ""
    : `Decided under ${priorWords(run, prior)}; so are f(k) and the share of correct answers for each k, which is measured on the stratified test set: equally many pairs for every k.`;

// Where the slider of the Ask page has to stand for this prior: nothing for the run's own.
const askedUnder = (run, { prior }) =>
  prior === run.priors.own ? null : prior === "training" ? 0 : run.priors.own === "training" ? 100 : null;

export function otherLede(run) {
  const last = run.columns.epoch.length - 1;
  return `Task ${run.task}, integers up to ${whole(run.maximum)} in base ${run.base}. After ${plural(last + 1, "epoch")} ${percent(run.columns.accuracy[last])} of the test questions are answered correctly.`;
}

// The set that the rules are about: D, or the labels E of the classes. Without it there is nothing to predict by.
const setName = (data) => (data.E ? "E" : "D");
const labels = (data) => data.E ?? data.D;
const hasRules = (data) => labels(data).length > 0;

// The three numbers that matter, as they stand at this epoch.
export const facts = (data) =>
  [
    [`${data.D.length}`, "of the first 100 GCD are known"],
    [percent(data.accuracy.measured), "of random pairs are predicted correctly"],
    hasRules(data)
      ? [share(data.fidelity.stratified.value), "of its predictions, right or wrong, are what the rules say"]
      : ["–", "no rules yet: no GCD is known"],
  ].map(([value, text]) => h("div", {}, h("b", { text: value }), h("span", { text })));

export function knownFormula(data) {
  const name = h("b", { text: setName(data) });
  if (!hasRules(data)) return [name, " = { } – no GCD is known yet."];
  if (!data.sets) return [name, ` = {${list(labels(data))}}`];
  if (!data.sets.length) return [name, " = {1}"];
  const set = ({ prime, powers }) => h("span", { class: `set${data.grokked.includes(prime) ? " grokked" : ""}`, text: `{${list(powers)}}` });
  return [name, " = ", ...data.sets.flatMap((factor, index) => [index ? " × " : "", set(factor)])];
}

export const verdictBadge = (data) =>
  h("span", { class: `badge ${data.certified ? "good" : "bad"}`, text: data.certified ? "certified: the rules explain it" : data.verdict });

// What the model does with pairs of GCD k: bars for its predictions, and why.
export function detail(run, data, k) {
  const cell = data.f.find((entry) => entry.k === k);
  if (!cell)
    return [h("p", { class: "hint", text: "Point at a cell to see what the model does with that GCD; click to keep it." })];
  const kind = (value) => (value === k ? "right" : value === cell.rule ? "ruled" : "other");
  const shown = cell.values.filter(([, part], index) => index === 0 || part >= 0.005);
  const [a, b] = data.examples[k] ?? [];
  const epoch = run.checkpoints.includes(data.epoch) ? data.epoch : null;
  return [
    h("h3", { text: `Pairs with GCD ${k}${k > 1 && product(k) !== `${k}` ? ` = ${product(k)}` : ""}` }),
    h("div", { class: "bars" }, shown.map(([value, part]) => bar(answer(value), part, kind(value)))),
    h("p", { text: whySentence(cell, data) }),
    a && run.checkpoints.length
      ? h("p", {}, h("a", { href: link("ask", run.id, { a, b, epoch, prior: askedUnder(run, data) }), text: `Ask the model such a pair: ${whole(a)} and ${whole(b)}` }))
      : null,
  ];
}

function whySentence(cell, data) {
  const name = setName(data);
  const none = !labels(data).includes(cell.label);
  const largest = none
    ? `No element of ${name} divides ${cell.k}`
    : cell.label === cell.k
      ? `${cell.k} is in ${name}`
      : `The largest element of ${name} that divides ${cell.k} is ${cell.label}`;
  if (cell.kind === "correct") return `${cell.k} is in D: the model predicts it correctly.`;
  if (cell.kind === "learning") return `${largest}, but a larger divisor is being learned: the model hesitates.`;
  if (cell.kind === "broken") return `${largest}, so the rules say ${answer(cell.rule)}; the model does something else.`;
  if (none) return `${largest}, so it gets the prediction of coprime pairs.`;
  return `${largest}, and ${cell.rule === cell.label ? "that is what the model predicts" : `the model predicts ${answer(cell.rule)} for it`}.`;
}

export function rulesList(data) {
  const exceptions = (rule) =>
    h("details", {},
      h("summary", { text: `${plural(rule.exceptions.length, "exception")}, ${share(rule.share)} of the k obey` }),
      h("p", { class: "exceptions" }, rule.exceptions.map(({ k, text }) => h("span", { class: "exception", "data-k": k, text }))));
  const items = data.rules.map((rule) =>
    h("li", { class: rule.mark === "none" ? "wait" : rule.mark }, h("span", { text: rule.says }), rule.mark === "no" ? exceptions(rule) : null),
  );
  if (data.being_learned.length)
    items.push(h("li", { class: "wait", text: `being learned, so not judged: ${list(data.being_learned)}` }));
  return h("ul", { class: "rules" }, items);
}

// Fidelity with its interval, and the accuracy that D implies beside the measured one; dashes while D is empty.
export function certificate(data) {
  const ruled = hasRules(data);
  const usual = data.f.find((cell) => cell.k === 1)?.prediction ?? null;
  const f1 = usual === null ? "which is no integer" : `which is ${whole(usual)}`;
  const hundred = (value) => (100 * value).toFixed(2);
  const row = (name, value, note) =>
    h("tr", {}, h("th", { scope: "row", text: name }), h("td", { text: value }), h("td", { class: "soft", text: note }));
  return h("table", { class: "figures" },
    h("tbody", {},
      Object.entries(data.fidelity).map(([name, { value, low, high }]) =>
        row(`fidelity, ${name} pairs`, ruled ? `${hundred(value)} %` : "–", ruled ? `95 %: ${hundred(low)} to ${hundred(high)}` : "D is empty")),
      row("accuracy, measured", `${data.accuracy.measured.toFixed(2)} %`, "on random pairs"),
      row("accuracy, by the rules", ruled ? `${data.accuracy.predicted.toFixed(2)} %` : "–",
        ruled ? "if they were followed exactly; by counting pairs" : `D is empty: every pair would get f(1), ${f1}`)));
}

export function counterexamples(run, data) {
  const pairs = data.counterexamples;
  if (!hasRules(data)) return null;
  if (!pairs.length) return h("p", { text: "No pair that was tried speaks against the rules." });
  const asked = run.checkpoints.includes(data.epoch);
  const ask = ({ a, b }) => h("a", { href: link("ask", run.id, { a, b, epoch: data.epoch, prior: askedUnder(run, data) }), text: "ask" });
  const rows = pairs.map((pair) => [
    whole(pair.a), whole(pair.b), pair.gcd, answer(pair.prediction), answer(pair.rule), ...(asked ? [ask(pair)] : []),
  ]);
  const heads = ["a", "b", "GCD", "predicted", "rules say", ...(asked ? [""] : [])];
  return h("details", {},
    h("summary", { text: `${pairs.length === 30 ? "The first 30" : pairs.length} pairs on which the model and the rules differ` }),
    table("Pairs against the rules", heads, rows));
}

export function classesTable(data) {
  if (!data.classes) return null;
  const rows = data.classes.map((group) => [group.label, answer(group.prediction), share(group.share), list(group.members)]);
  return h("details", { open: true },
    h("summary", { text: `${data.classes.length} classes` }),
    table("Classes", ["class", "predicted", "share", "members"], rows));
}
