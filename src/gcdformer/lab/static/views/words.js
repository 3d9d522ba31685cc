// The sentences beside the pictures of the run page.

import { answer, h, list, millions, minutes, percent, product, share, whole } from "../dom.js";
import { link } from "../route.js";

export function runTitle(run) {
  if (!run.example) return run.name;
  const grokked = Object.keys(run.timeline.prime_powers).filter((q) => isPrime(Number(q)) && run.base % q);
  return grokked.length ? `${list(grokked)} grokked in base ${run.base}` : `The sieve in base ${run.base}`;
}

const isPrime = (q) => q > 1 && Array.from({ length: q - 2 }, (_, i) => i + 2).every((d) => q % d);

export function lede(run, index, data) {
  const { columns } = run;
  const what = `${run.family === "transformer" ? "A transformer" : run.family === "lstm" ? "An LSTM" : "A GRU"} reads two integers up to ${whole(run.maximum)}, written in base ${run.base}, and has to answer their greatest common divisor. `;
  const now = `After epoch ${columns.epoch[index]} (${millions(columns.examples[index])} examples, ${minutes(columns.seconds[index])}) it answers ${percent(columns.accuracy[index])} of random pairs correctly`;
  const known = data ? data.D.length : columns.n_correct[index];
  return [
    what,
    h("strong", { text: now }),
    `${columns.accuracy[index] > 50 ? ", although it knows only" : " and knows"} ${known} of the first 100 GCD. Drag the slider, or press play, to watch the set grow.`,
  ];
}

// Without D there is nothing to predict by: the rule model answers f(1) to every pair.
const hasRules = (data) => data.D.length > 0 || data.form === "U";

// The three numbers that matter, as they stand at this epoch.
export function facts(data) {
  return [
    [`${data.D.length}`, "of the first 100 GCD are known"],
    [percent(data.accuracy.measured), "of random pairs are answered right"],
    hasRules(data)
      ? [share(data.fidelity.stratified.value), "of its answers, right or wrong, are what the rules say"]
      : ["–", "no rules yet: no GCD is known"],
  ].map(([value, text]) => h("div", {}, h("b", { text: value }), h("span", { text })));
}

export function otherLede(run) {
  const last = run.columns.epoch.length - 1;
  return `Task ${run.task}, integers up to ${whole(run.maximum)} in base ${run.base}. After ${last + 1} epochs ${percent(run.columns.accuracy[last])} of the test questions are answered right.`;
}

export function knownFormula(data, base) {
  const name = data.form === "U" ? "E" : "D";
  if (!data.D.length && data.form !== "U") return [h("b", { text: "D" }), " = { } – no GCD is known yet."];
  if (!data.sets) return [h("b", { text: name }), ` = {${list(data.E ?? data.D)}}`];
  if (!data.sets.length) return [h("b", { text: name }), " = {1}"];
  const sets = data.sets.flatMap(({ prime, powers }, index) => [
    index ? " × " : "",
    h("span", { class: `set${base % prime ? " grokked" : ""}`, text: `{${list(powers)}}` }),
  ]);
  return [h("b", { text: name }), " = ", ...sets];
}

export function verdictBadge(data) {
  const broken = data.rules.filter((rule) => !rule.holds).length;
  const why =
    broken && data.form !== "none"
      ? `not certified: ${broken} of ${data.rules.length} rules have exceptions`
      : data.verdict;
  return h("span", {
    class: `badge ${data.certified ? "good" : "bad"}`,
    title: data.verdict,
    text: data.certified ? "certified: the rules explain it" : why,
  });
}

// What the model does with pairs of GCD k: bars for the values it gives, and why.
export function detail(run, data, k) {
  const one = data.f.find((entry) => entry.k === k);
  if (!one)
    return [h("p", { class: "hint", text: "Point at a cell to see what the model does with that GCD; click to keep it." })];
  const factors =
    one.factors.length > 1 || one.factors[0] !== k || product(one.factors) !== `${k}` ? ` = ${product(one.factors)}` : "";
  const rows = one.values
    .filter(([, part], index) => index === 0 || part >= 0.005)
    .map(([value, part]) =>
      h(
        "div",
        { class: "bar-row" },
        h("span", { class: "bar-name", text: answer(value) }),
        h(
          "span",
          { class: "bar" },
          h("i", {
            class: value === k ? "right" : value === one.rule ? "ruled" : "other",
            style: { "--share": part.toFixed(4) },
          }),
        ),
        h("span", { class: "bar-share", text: share(part) }),
      ),
    );
  const pair = data.examples[k];
  return [
    h("h3", { text: `Pairs with GCD ${k}${k === 1 ? "" : factors}` }),
    h("div", { class: "bars" }, rows),
    h("p", { text: whySentence(one, data) }),
    pair && run.checkpoints.length
      ? h(
          "p",
          {},
          h("a", {
            href: link("ask", run.id, {
              a: pair[0],
              b: pair[1],
              epoch: run.checkpoints.includes(data.epoch) ? data.epoch : null,
            }),
            text: `Ask the model such a pair: ${whole(pair[0])} and ${whole(pair[1])}`,
          }),
        )
      : null,
  ];
}

function whySentence(one, data) {
  const name = data.form === "U" ? "E" : "D";
  const none = !(data.E ?? data.D).includes(one.label);
  const largest = none
    ? `No element of ${name} divides ${one.k}`
    : one.label === one.k
      ? `${one.k} is in ${name}`
      : `The largest element of ${name} that divides ${one.k} is ${one.label}`;
  if (one.kind === "correct") return `${one.k} is in D: the model answers it right.`;
  if (one.kind === "learning") return `${largest}, but a larger divisor is being learned: the model hesitates.`;
  if (one.kind === "broken") return `${largest}, so the rules say ${answer(one.rule)}; the model does something else.`;
  return none
    ? `${largest}, so it gets the answer of coprime pairs.`
    : `${largest}, and ${one.rule === one.label ? "that is what the model answers" : `the model answers ${answer(one.rule)} for it`}.`;
}

export function rulesList(data) {
  const items = data.rules.map((rule) =>
    h(
      "li",
      { class: rule.mark === "none" ? "wait" : rule.mark },
      h("span", { text: rule.says }),
      rule.mark !== "no"
        ? null
        : h(
            "details",
            {},
            h("summary", {
              text: `${rule.exceptions.length} exception${rule.exceptions.length > 1 ? "s" : ""}, ${share(rule.share)} of the k obey`,
            }),
            h(
              "p",
              { class: "exceptions" },
              rule.exceptions.map((one) => h("span", { class: "exception", "data-k": one.k, text: one.text })),
            ),
          ),
    ),
  );
  if (data.being_learned.length)
    items.push(h("li", { class: "wait", text: `being learned, so not judged: ${list(data.being_learned)}` }));
  return h("ul", { class: "rules" }, items);
}

// Fidelity with its interval, and the accuracy that D implies beside the measured one; dashes while D is empty.
export function certificate(data) {
  const ruled = hasRules(data);
  const usual = data.f.find((one) => one.k === 1)?.prediction ?? null;
  const rows = Object.entries(data.fidelity).map(([name, one]) =>
    h(
      "tr",
      {},
      h("th", { scope: "row", text: `fidelity, ${name} pairs` }),
      h("td", { text: ruled ? `${(100 * one.value).toFixed(2)} %` : "–" }),
      h("td", {
        class: "soft",
        text: ruled ? `95 %: ${(100 * one.low).toFixed(2)} to ${(100 * one.high).toFixed(2)}` : "D is empty",
      }),
    ),
  );
  return h(
    "table",
    { class: "figures" },
    h(
      "tbody",
      {},
      ...rows,
      h(
        "tr",
        {},
        h("th", { scope: "row", text: "accuracy, measured" }),
        h("td", { text: `${data.accuracy.measured.toFixed(2)} %` }),
        h("td", { class: "soft", text: "on random pairs" }),
      ),
      h(
        "tr",
        {},
        h("th", { scope: "row", text: "accuracy, if D were all" }),
        h("td", { text: ruled ? `${data.accuracy.predicted.toFixed(2)} %` : "–" }),
        h("td", {
          class: "soft",
          text: ruled ? "exact, by counting pairs" : `D is empty: every pair would get f(1), ${usual === null ? "which is no integer" : `which is ${whole(usual)}`}`,
        }),
      ),
    ),
  );
}

export function counterexamples(run, data) {
  if (!hasRules(data)) return null;
  if (!data.counterexamples.length) return h("p", { text: "No pair that was tried speaks against the rules." });
  const asked = run.checkpoints.includes(data.epoch);
  const rows = data.counterexamples.map((one) =>
    h(
      "tr",
      {},
      ...[whole(one.a), whole(one.b), one.gcd, answer(one.prediction), answer(one.rule)].map((text) =>
        h("td", { text: `${text}` }),
      ),
      asked
        ? h("td", {}, h("a", { href: link("ask", run.id, { a: one.a, b: one.b, epoch: data.epoch }), text: "ask" }))
        : null,
    ),
  );
  return h(
    "details",
    {},
    h("summary", {
      text: `${data.counterexamples.length === 30 ? "The first 30" : data.counterexamples.length} pairs on which the model and the rules differ`,
    }),
    h(
      "div",
      { class: "scroll", tabindex: "0", role: "region", "aria-label": "Pairs against the rules" },
      h(
        "table",
        { class: "figures" },
        h(
          "thead",
          {},
          h(
            "tr",
            {},
            ...["a", "b", "GCD", "predicted", "rules say"].map((text) => h("th", { scope: "col", text })),
            asked ? h("td", {}) : null,
          ),
        ),
        h("tbody", {}, rows),
      ),
    ),
  );
}

export function classesTable(data) {
  if (!data.classes) return null;
  return h(
    "details",
    { open: true },
    h("summary", { text: `${data.classes.length} classes` }),
    h(
      "div",
      { class: "scroll", tabindex: "0", role: "region", "aria-label": "Classes" },
      h(
        "table",
        { class: "figures" },
        h(
          "thead",
          {},
          h("tr", {}, ...["class", "predicted", "share", "members"].map((text) => h("th", { scope: "col", text }))),
        ),
        h(
          "tbody",
          {},
          data.classes.map((one) =>
            h(
              "tr",
              {},
              ...[one.label, answer(one.prediction), share(one.share), list(one.members)].map((text) =>
                h("td", { text: `${text}` }),
              ),
            ),
          ),
        ),
      ),
    ),
  );
}
