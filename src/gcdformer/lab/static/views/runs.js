// The list of runs: sort, filter by typing, choose some to compare; it follows runs in training.

import { exported, firstRuns, repeat, runs } from "../api.js";
import { ago, h, hero, millions, percent, plural, whole } from "../dom.js";
import { spark } from "../figures/curves.js";
import { joinIds, link, splitIds, update } from "../route.js";

const POLL = 2000;
const MOST = 8;
// "base 30" and "seed=2" ask for that field, not for the words anywhere.
const NAMED = /\b(base|seed|epochs)\s*[ =]\s*(\d+)\b/g;
const SORTS = {
  name: { text: "Run", by: (run) => run.name, numeric: false },
  base: { text: "Base", by: (run) => run.base ?? 0 },
  epochs: { text: "Epochs", by: (run) => run.epochs ?? 0 },
  accuracy: { text: "Accuracy", by: (run) => run.accuracy ?? -1 },
  correct: { text: "Correct GCD", by: (run) => run.n_correct ?? -1 },
  changed: { text: "Changed", by: (run) => run.changed },
};

export async function runsView(place, { params }, context, signal) {
  const { body, tag } = await firstRuns();
  const page = new RunsPage(place, body.runs, params, context);
  let seen = tag;
  repeat(async () => {
    const listed = await runs().catch(() => null);
    if (!listed || listed.tag === seen) return;
    seen = listed.tag;
    page.update(listed.body.runs);
  }, POLL, signal);
}

class RunsPage {
  constructor(place, listed, params, context) {
    this.listed = listed;
    this.query = params.get("q") ?? "";
    this.sort = params.get("sort") in SORTS ? params.get("sort") : "changed";
    this.down = params.get("order") ? params.get("order") === "down" : this.sort !== "name";
    this.chosen = new Set(splitIds(params.get("pick")));
    this.rows = new Map();
    this.context = context;
    this.filter = h("input", { type: "search", id: "filter", placeholder: "base 30, uniform, lstm …", value: this.query, autocomplete: "off", spellcheck: "false", oninput: () => this.type() });
    this.count = h("p", { class: "hint", role: "status" });
    this.compare = h("a", { class: "button", role: "button" });
    this.body = h("tbody", {});
    this.heads = h("tr", {});
    this.lede = h("p", { class: "lede" });
    place.append(
      hero({ title: "Runs" }, this.lede),
      h("div", { class: "toolbar" }, h("label", { for: "filter", text: "Filter" }), this.filter, this.count, this.compare),
      h("table", { class: "runs" }, h("caption", { class: "unseen", text: "Runs" }), h("thead", {}, this.heads), this.body),
    );
    this.draw();
  }

  intro() {
    if (exported || !this.listed.every((run) => run.example))
      return ["Each run is a small model that learns the greatest common divisor. Open one to watch its sieve grow; tick some to compare them."];
    const here = this.context.training ? [", or ", h("a", { href: link("train"), text: "here" })] : [];
    return [
      "There are no runs in this folder yet, so here are two that come with the lab: a sieve that grows step by step, and a prime that is grokked after a long plateau. Train your own with ",
      h("code", { text: "gcdformer demo" }), ...here, "; it will appear by itself.",
    ];
  }

  type() {
    this.query = this.filter.value;
    update({ q: this.query });
    this.draw();
  }

  update(listed) {
    this.listed = listed;
    this.draw();
  }

  matching() {
    const named = [];
    const rest = this.query.toLowerCase().replaceAll(NAMED, (_, name, value) => {
      named.push([name, Number(value)]);
      return " ";
    });
    const words = rest.split(/\s+/).filter(Boolean);
    return this.listed.filter((run) => {
      const text =
        `${run.name} base ${run.base} base-${run.base} ${run.task} ${run.examples_from} ${run.model} seed ${run.seed} ${run.live ? "live training" : ""} ${run.damaged ? "damaged" : ""}`.toLowerCase();
      const digits = new Set(text.split(/[^\w.]+/));
      const has = (word) => (/^\d+$/.test(word) ? digits.has(word) || run.name.includes(word) : text.includes(word));
      return named.every(([name, value]) => run[name] === value) && words.every(has);
    });
  }

  sorted(listed) {
    const { by, numeric = true } = SORTS[this.sort];
    const sign = this.down ? -1 : 1;
    const order = (a, b) => (numeric ? by(a) - by(b) : by(a).localeCompare(by(b), "en", { numeric: true }));
    return [...listed].sort((a, b) => sign * order(a, b) || a.name.localeCompare(b.name));
  }

  draw() {
    const counts = this.listed.filter((run) => run.curve_of === "n_correct").flatMap((run) => run.curve.map(([, value]) => value));
    const top = Math.max(20, ...counts);
    if (top !== this.top) this.rows.clear();
    this.top = top;
    const shown = this.sorted(this.matching());
    const all = this.listed.length;
    this.lede.replaceChildren(...this.intro());
    this.drawHeads();
    this.body.replaceChildren(...(shown.length ? shown.map((run) => this.row(run)) : [this.nothing()]));
    this.count.textContent = shown.length === all ? plural(all, "run") : `${whole(shown.length)} of ${plural(all, "run")}`;
    this.drawCompare();
  }

  nothing() {
    const clear = () => {
      this.filter.value = "";
      this.type();
      this.filter.focus();
    };
    return h("tr", { class: "nothing" },
      h("td", { colspan: 8 },
        h("p", { text: "No run has all of these words in its name, base, training examples, model or seed." }),
        h("button", { type: "button", class: "button quiet", onclick: clear, text: "Show all runs" })));
  }

  drawHeads() {
    const head = (key) => {
      const sorted = key === this.sort;
      return h("th", { scope: "col", class: `col-${key}`, "aria-sort": sorted ? (this.down ? "descending" : "ascending") : "none" },
        h("button", { type: "button", onclick: () => this.by(key), text: SORTS[key].text }),
        sorted && h("span", { "aria-hidden": "true", text: this.down ? " ↓" : " ↑" }));
    };
    this.heads.replaceChildren(
      h("th", { scope: "col", class: "col-pick" }, h("span", { class: "unseen", text: "Compare" })),
      ...["name", "base", "epochs", "accuracy", "correct"].map(head),
      h("th", { scope: "col", class: "col-curve", text: "Learning" }),
      head("changed"),
    );
  }

  by(key) {
    this.down = key === this.sort ? !this.down : key !== "name" && key !== "base";
    this.sort = key;
    update({ sort: key, order: this.down ? "down" : "up" });
    this.draw();
    this.heads.querySelector(`.col-${key} button`).focus();
  }

  row(run) {
    const key = JSON.stringify(run);
    const cached = this.rows.get(run.id);
    if (cached?.key === key) return cached.row;
    const row = run.damaged ? damagedRow(run) : this.wholeRow(run);
    this.rows.set(run.id, { key, row });
    return row;
  }

  wholeRow(run) {
    const pick = h("input", { type: "checkbox", "aria-label": `Compare ${run.name}`, onchange: () => this.pick(run.id, pick) });
    pick.checked = this.chosen.has(run.id);
    const number = (name, ...children) => h("td", { class: `col-${name} num`, "data-label": name }, children);
    const badge = (kind, text) => h("span", { class: `badge${kind}`, text });
    return h("tr", { "data-run": run.id, class: run.live ? "is-live" : null },
      h("td", { class: "col-pick" }, pick),
      h("td", { class: "col-name" },
        h("a", { href: link("run", run.id), text: run.name }),
        run.live && badge(" live", "training"),
        run.example && badge("", "bundled example"),
        h("small", { text: [run.examples_from, run.short_model, ...(run.task === "gcd" ? [] : [run.task])].join(" · ") })),
      number("base", `${run.base}`),
      number("epochs", run.epochs ? [`${run.epochs}`, h("small", { text: millions(run.examples) })] : "–"),
      number("accuracy", percent(run.accuracy)),
      number("correct", run.n_correct === null ? "–" : `${run.n_correct}`),
      h("td", { class: "col-curve" }, spark(run.curve, run.curve_of === "n_correct" ? this.top : 100)),
      h("td", { class: "col-changed", text: ago(run.changed) }));
  }

  pick(id, box) {
    if (box.checked && this.chosen.size >= MOST) {
      box.checked = false;
      this.count.textContent = `At most ${MOST} runs can be compared at once.`;
    } else if (box.checked) this.chosen.add(id);
    else this.chosen.delete(id);
    update({ pick: joinIds(this.chosen) });
    this.drawCompare();
  }

  drawCompare() {
    const count = this.chosen.size;
    const texts = ["Tick runs to compare", "Tick another run to compare"];
    this.compare.textContent = texts[count] ?? `Compare ${count} runs`;
    this.compare.classList.toggle("off", count < 2);
    if (count > 1) this.compare.setAttribute("href", link("compare", null, { runs: joinIds(this.chosen) }));
    else this.compare.removeAttribute("href");
    this.compare.setAttribute("aria-disabled", `${count < 2}`);
  }
}

const damagedRow = (run) =>
  h("tr", { "data-run": run.id, class: "is-damaged" },
    h("td", { class: "col-pick" }),
    h("td", { class: "col-name", colspan: 7 },
      h("b", { text: run.name }), h("span", { class: "badge bad", text: "damaged" }), h("small", { text: run.damaged })));
