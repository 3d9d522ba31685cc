// Below a question to a model: flip divisibility of a by a learned prime inside the network, and see what comes out.

import { flip, mechanism } from "../api.js";
import { answer, h, section, whole } from "../dom.js";
import { link } from "../route.js";
import { askView } from "./ask.js";

// Only a server can exchange values inside a model.
const served = document.body.dataset.source === "server";

export async function askAndFlipView(place, route, context, signal) {
  await askView(place, route, context, signal);
  if (!served || !place.querySelector("#a")) return;
  mechanism(route.id).then(({ found }) => place.append(flipSection(place, route.id, found)), () => null);
}

function flipSection(place, id, found) {
  const page = h("a", { href: link("mechanism", id), text: "where its divisors live" });
  if (!found?.primes.length)
    return h("p", { class: "hint flip" }, "Divisibility can be flipped inside the network once it is known ", page, ".");
  const result = h("p", { class: "flip-result", "aria-live": "polite" });
  let turn = 0;
  const forget = () => {
    turn += 1;
    result.replaceChildren();
  };
  const read = (name) => place.querySelector(`#${name}`).value.trim().replaceAll(/[,_ ]/g, "");
  const press = async (p) => {
    forget();
    const mine = turn;
    result.append(h("span", { class: "hint busy", text: "Exchanging values …" }));
    const said = await flip(id, p, read("a"), read("b")).then(outcome, (error) => [h("span", { class: "problem", text: error.message })]);
    if (turn === mine) result.replaceChildren(...said);
  };
  const button = ({ p }) =>
    h("button", { type: "button", class: "button quiet", onclick: () => press(p), text: `Flip divisibility by ${p} of a` });
  // Another question, whether typed or drawn: what came out before was not for it.
  place.addEventListener("input", forget);
  place.addEventListener("click", (event) => event.target.closest(".choices button") && forget());
  return section("flip plain", "Flip a divisor",
    h("p", {}, `Put in, where the model of epoch ${found.epoch} carries a prime, the value of an operand that differs from a in divisibility by it. It is known `, page, "."),
    h("p", { class: "actions" }, found.primes.map(button)),
    result);
}

function outcome({ p, a, b, swapped, before, expected, answer: out, places }) {
  const asSaid = out === expected;
  return [
    `At the ${places.join(" and the ")}, the value comes from ${whole(swapped)}, which ${p} ${swapped % p ? "does not divide" : "divides"}, while the question is still (${whole(a)}, ${whole(b)}). The rules say ${whole(expected)} instead of ${whole(before)}, ${asSaid ? "and" : "but"} `,
    h("b", { class: asSaid ? "as-said" : "not-as-said", text: answer(out) }),
    " came out.",
  ];
}
