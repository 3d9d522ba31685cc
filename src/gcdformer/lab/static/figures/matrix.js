// Shares as shaded cells: places of the network by primes, and primes by primes.

import { h, share } from "../dom.js";

const MOVES = 0.05;
export const primeName = ({ p, divides_base }) => `${p}${divides_base ? "" : "*"}`;
// A recurrent encoder has its last state only.
export const placeName = ({ positions }, site, position) => (site.includes("final") ? "final state" : positions[position]);
const shade = (value) => ({ "--value": (value ?? 0).toFixed(3) });
const percent = (value) => (value === null ? "" : `${Math.round(100 * value)}`);

const cellOf = (prime, site, position) => [prime, site, position, `${prime.p}|${site}|${position}`];

// A row for each place, two columns for each prime; only rows where something moves unless all are wanted. A cell is a button.
export class Places {
  constructor(mechanism, onChoose) {
    this.mechanism = mechanism;
    this.onChoose = onChoose;
    this.all = false;
    this.chosen = null;
    this.element = h("div", { class: "scroll", role: "region", tabindex: "0", "aria-label": "Places by primes" });
    this.draw();
  }

  at(prime, site, position, direction) {
    return prime[direction][site]?.[position] ?? null;
  }

  places() {
    const { mechanism } = this;
    const sites = mechanism.sites.filter((site) => mechanism.primes.some((prime) => prime.interchange[site]));
    const moves = (site, position) =>
      mechanism.primes.some((prime) => ["interchange", "adding"].some((direction) => this.at(prime, site, position, direction) >= MOVES));
    const tested = (site, position) => mechanism.primes.some((prime) => this.at(prime, site, position, "interchange") !== null);
    const shown = this.all ? tested : moves;
    return sites.map((site) => [site, mechanism.positions.map((_, position) => position).filter((position) => shown(site, position))]);
  }

  rows() {
    const { mechanism } = this;
    const line = (prime, site, position) => [prime.p, site, placeName(mechanism, site, position), this.at(prime, site, position, "interchange"), this.at(prime, site, position, "adding")];
    const lines = ([site, shown]) => shown.flatMap((position) => mechanism.primes.map((prime) => line(prime, site, position)));
    return [["p", "site", "position", "removes", "adds"], ...this.places().flatMap(lines)];
  }

  // Every cell by its key, as `onChoose` gets it.
  cells() {
    const { primes } = this.mechanism;
    const of = (prime, site) => prime.interchange[site].map((_, position) => cellOf(prime, site, position));
    return new Map(primes.flatMap((prime) => Object.keys(prime.interchange).flatMap((site) => of(prime, site))).map((cell) => [cell[3], cell]));
  }

  showAll(all) {
    this.all = all;
    this.draw();
  }

  choose(key) {
    this.chosen = key;
    for (const button of this.element.querySelectorAll("button"))
      button.setAttribute("aria-pressed", `${button.dataset.key === key}`);
  }

  draw() {
    const { primes } = this.mechanism;
    const cell = (prime, site, position, direction) => {
      const value = this.at(prime, site, position, direction);
      if (value === null) return h("td", { class: "none" }, h("span", { class: "unseen", text: "too few pairs" }));
      const chosen = cellOf(prime, site, position);
      const key = chosen[3];
      const does = direction === "adding" ? "adds" : "removes";
      return h("td", {},
        h("button", { type: "button", class: "share-cell", style: shade(value), "data-key": key, "aria-pressed": `${this.chosen === key}`,
            "aria-label": `${site}, ${placeName(this.mechanism, site, position)}: ${does} ${prime.p} in ${share(value)}`, text: percent(value),
            onclick: () => this.onChoose(...chosen) }));
    };
    const line = (site, position) =>
      h("tr", {}, h("th", { scope: "row", text: placeName(this.mechanism, site, position) }),
        primes.map((prime) => ["interchange", "adding"].map((direction) => cell(prime, site, position, direction))));
    const group = ([site, shown]) =>
      h("tbody", {},
        h("tr", { class: "site" }, h("th", { scope: "rowgroup", colspan: 1 + 2 * primes.length },
          h("span", {}, h("code", { text: site }), shown.length ? null : " moves nothing"))),
        shown.map((position) => line(site, position)));
    this.element.replaceChildren(
      h("table", { class: "places" },
        h("thead", {},
          h("tr", {}, h("td", {}), primes.map((prime) => h("th", { scope: "colgroup", colspan: 2, text: primeName(prime) }))),
          h("tr", {}, h("td", {}), primes.map(() => ["removes", "adds"].map((text) => h("th", { scope: "col", text }))))),
        this.places().map(group)));
  }
}

export const overlapMatrix = ({ primes, overlap }) => ({
  element: h("div", { class: "scroll", role: "region", tabindex: "0", "aria-label": "Overlap of the subspaces of two primes" },
    h("table", { class: "places overlap" },
      h("thead", {}, h("tr", {}, h("td", {}), primes.map((prime) => h("th", { scope: "col", text: primeName(prime) })))),
      h("tbody", {}, primes.map((prime, row) =>
        h("tr", {}, h("th", { scope: "row", text: primeName(prime) }),
          overlap[row].map((value) => h("td", {}, h("span", { class: "share-cell", style: shade(value), text: value === null ? "–" : value.toFixed(2) })))))))),
  rows: () => [["p", ...primes.map(({ p }) => p)], ...primes.map(({ p }, row) => [p, ...overlap[row]])],
});
