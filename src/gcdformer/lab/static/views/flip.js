// Below a question to a model: flip divisibility of a by a learned prime inside the network, and see what comes out.

import { exported, mechanismOf } from "../api.js";
import { answer, h, section, whole } from "../dom.js";
import { integer, link, update } from "../route.js";
import { askView } from "./ask.js";

export async function askAndFlipView(place, route, context, signal) {
  const page = await askView(place, route, context, signal);
  if (page) mechanismOf(route.id).then(({ mechanism }) => page.figure.append(flipSection(page, mechanism, integer(route.params, "flip"))), () => null);
}

// `first` is the prime to begin with, if any.
function flipSection(page, mechanism, first) {
  const { run, asker, figure } = page;
  const where = h("a", { href: link("mechanism", run.id), text: "where its divisors live" });
  if (!mechanism?.primes.length)
    return h("p", { class: "hint flip" }, "Divisibility can be flipped inside the network once it is known ", where, ".");
  if (exported && !run.checkpoints.includes(mechanism.epoch))
    return h("p", { class: "hint flip" }, "It is known ", where, `, but of epoch ${mechanism.epoch}, whose weights are not in this page.`);
  const result = h("p", { class: "flip-result", "aria-live": "polite" });
  let turn = 0;
  const forget = () => {
    turn += 1;
    result.replaceChildren();
    update({ flip: null });
  };
  const press = async (p) => {
    forget();
    const mine = turn;
    update({ flip: p });
    result.append(h("span", { class: "hint busy", text: "Exchanging values …" }));
    const said = await asker.flip(mechanism, p, ...page.question()).then(outcome, (error) => [h("span", { class: "problem", text: error.message })]);
    if (turn === mine) result.replaceChildren(...said);
  };
  const button = ({ p }) =>
    h("button", { type: "button", class: "button quiet", onclick: () => press(p), text: `Flip divisibility by ${p} of a` });
  // Another question, whether typed or drawn: what came out before was not for it.
  figure.addEventListener("input", forget);
  figure.addEventListener("click", (event) => event.target.closest(".choices button") && forget());
  if (mechanism.primes.some(({ p }) => p === first)) press(first);
  return section("flip plain", "Flip a divisor",
    h("p", {}, `Put in, where the model of epoch ${mechanism.epoch} carries a prime, the value of an operand that differs from a in divisibility by it. It is known `, where, "."),
    h("p", { class: "actions" }, mechanism.primes.map(button)),
    result);
}

const joined = (places) => new Intl.ListFormat("en-GB").format(places.map((place) => `the ${place}`));

function outcome({ p, a, b, swapped, before, expected, answer: out, places }) {
  const asSaid = out === expected;
  return [
    `At ${joined(places)}, the value comes from ${whole(swapped)}, which ${p} ${swapped % p ? "does not divide" : "divides"}, while the question is still (${whole(a)}, ${whole(b)}). The rules say ${answer(expected)} instead of ${answer(before)}, ${asSaid ? "and" : "but"} `,
    h("b", { class: asSaid ? "as-said" : "not-as-said", text: answer(out) }),
    " came out.",
  ];
}
