// D by prime powers: a row for each prime, a cell for each power, filled by the share of its pairs that are predicted correctly.

import { h, share } from "../dom.js";

const ALWAYS = 13;
const WORTH_SHOWING = 0.02;

export class Sieve {
  constructor({ onHover, onChoose }) {
    this.cells = new Map();
    this.key = "";
    this.list = h("div", { class: "sieve-rows" });
    this.rest = h("p", { class: "legend" });
    this.element = h("div", { class: "sieve" }, this.list, this.rest);
    const qOf = (event) => Number(event.target.closest?.(".power")?.dataset.k) || null;
    this.list.addEventListener("pointerover", (event) => onHover(qOf(event)));
    this.list.addEventListener("pointerleave", () => onHover(null));
    this.list.addEventListener("focusin", (event) => onHover(qOf(event)));
    this.list.addEventListener("focusout", () => onHover(null));
    this.list.addEventListener("click", (event) => qOf(event) && onChoose(qOf(event)));
  }

  // Those of a CSV, its heads first: also the primes of which nothing is known yet.
  rows() {
    const powers = this.data.prime_powers.flatMap(({ prime, divides_base, powers: all }) =>
      all.map(({ value, right, state }) => [prime, value, divides_base, right, state]));
    return [["prime", "power", "divides_base", "right", "state"], ...powers];
  }

  show(data) {
    this.data = data;
    const shown = data.prime_powers.filter(
      (row) => row.prime <= ALWAYS || row.divides_base || row.powers.some((power) => power.right > WORTH_SHOWING),
    );
    const key = shown.map((row) => row.prime).join(" ");
    if (key !== this.key) this.build(shown);
    this.key = key;
    for (const row of shown) {
      for (const power of row.powers) {
        const cell = this.cells.get(power.value);
        cell.className = `power ${power.state}${row.divides_base ? "" : " foreign"}`;
        cell.style.setProperty("--right", power.right.toFixed(3));
        cell.setAttribute("aria-label", `${power.value}: ${share(power.right)} of its pairs predicted correctly`);
      }
    }
    const hidden = data.prime_powers.filter((row) => !shown.includes(row)).map((row) => row.prime);
    this.rest.textContent = hidden.length ? `Nothing yet of the other primes up to ${hidden.at(-1)}.` : "";
  }

  build(rows) {
    this.cells.clear();
    this.list.replaceChildren(
      ...rows.map((row) =>
        h(
          "div",
          { class: "sieve-row" },
          h("span", {
            class: `prime${row.divides_base ? " divides" : ""}`,
            text: `${row.prime}`,
            title: row.divides_base ? "divides the base" : "does not divide the base",
          }),
          ...row.powers.map((power) => {
            const cell = h(
              "button",
              { type: "button", class: "power", "data-k": power.value },
              h("span", { text: `${power.value}` }),
            );
            this.cells.set(power.value, cell);
            return cell;
          }),
        ),
      ),
    );
  }

  // Outline the powers that divide the k in focus.
  mark(hovered, chosen) {
    const focus = hovered ?? chosen;
    for (const [value, cell] of this.cells) cell.classList.toggle("divides-k", Boolean(focus) && focus % value === 0);
  }
}
