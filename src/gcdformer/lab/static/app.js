// Which view the address asks for; the frame around it. A view is a function (place, route, context, signal).

import { about, exported, firstRuns, forgetFirstRuns } from "./api.js";
import { h, hero } from "./dom.js";
import { link, read } from "./route.js";
import { showOnly } from "./share.js";
import { askAndFlipView } from "./views/flip.js";
import { compareView } from "./views/compare.js";
import { ledgerView } from "./views/ledger.js";
import { mechanismView } from "./views/mechanism.js";
import { paperView } from "./views/paper.js";
import { runView } from "./views/run.js";
import { runsView } from "./views/runs.js";
import { trainView } from "./views/train.js";

const VIEWS = { "": runsView, runs: runsView, run: runView, mechanism: mechanismView, ask: askAndFlipView, compare: compareView, train: trainView, paper: paperView, ledger: ledgerView };
// Shown instead of the last view if the next one takes longer than a blink.
const WAITING = { paper: "Setting the measured runs beside the paper …", ledger: "Explaining the run …" };
const BLINK = 200;
const main = document.getElementById("main");
let context = { training: false, asking: false };
let leave = null;
let shown = null;

async function show() {
  const route = read();
  const key = `${route.view}/${route.id}`;
  leave?.abort();
  const mine = (leave = new AbortController());
  const view = VIEWS[route.view] ?? runsView;
  const place = h("div", { class: `view view-${route.view || "runs"}` });
  drawNavigation(route.view);
  const note = setTimeout(() => {
    if (!mine.signal.aborted && shown !== key) main.replaceChildren(waitNote(route.view));
  }, BLINK);
  try {
    if (view === runsView && (await openOnlyRun(route))) return;
    await view(place, route, context, mine.signal);
  } catch (error) {
    if (error.name === "AbortError") return;
    place.replaceChildren(problemPage(error));
    if (!("status" in error)) throw error;
  } finally {
    clearTimeout(note);
    if (!mine.signal.aborted) {
      showOnly(place, route.params.get("only"));
      main.replaceChildren(place);
      document.body.dataset.ready = route.view || "runs";
      const heading = place.querySelector("h1");
      document.title = heading ? `${heading.textContent} · gcdformer lab` : "gcdformer lab";
      if (heading && shown !== null && shown !== key) {
        heading.tabIndex = -1;
        heading.focus({ preventScroll: true });
        window.scrollTo(0, 0);
      }
      shown = key;
      forgetFirstRuns();
    }
  }
}

const waitNote = (view) => h("p", { class: "wait-note", role: "status", text: WAITING[view] ?? "Loading …" });

const problemPage = (error) =>
  hero({ title: error.damaged ? "This run is damaged" : "That did not work", lede: error.message },
    error.damaged ? h("p", { text: "Its files are not as gcdformer wrote them. Other runs are not affected." }) : null,
    h("p", { class: "actions" }, h("a", { class: "button quiet", href: link("runs"), text: "All runs" })));

// With nothing to choose from, the first view is the run itself.
async function openOnlyRun(route) {
  if (shown !== null || route.params.size || location.hash.startsWith("#/runs")) return false;
  const { body } = await firstRuns();
  if (body.runs.length !== 1 || body.runs[0].damaged || !body.runs[0].epochs) return false;
  location.replace(link("run", body.runs[0].id));
  return true;
}

function drawNavigation(view) {
  const views = { runs: "Runs", ...(exported ? {} : { train: "Train here" }), paper: "Paper" };
  const current = { "": "runs", run: "runs", mechanism: "runs", compare: "runs", ask: "runs", ledger: "paper" }[view] ?? view;
  const item = ([name, text]) => h("a", { href: link(name), text, "aria-current": name === current ? "page" : null });
  document.querySelector("nav").replaceChildren(...Object.entries(views).map(item));
}

function chooseTheme() {
  const root = document.documentElement;
  const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  root.dataset.theme = dark ? "light" : "dark";
  localStorage.setItem("theme", root.dataset.theme);
  window.dispatchEvent(new Event("theme"));
}

document.querySelector(".theme").addEventListener("click", chooseTheme);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => window.dispatchEvent(new Event("theme")));
document.querySelector(".skip").addEventListener("click", (event) => {
  event.preventDefault();
  main.focus();
});
window.addEventListener("hashchange", show);

const known = about()
  .then((server) => {
    context = server;
    document.getElementById("about").textContent =
      `gcdformer ${server.version}${exported ? " · an exported page" : ` · runs in ${server.folder}`}`;
  })
  .catch(() => null);
// Only a server has something to say that a view needs: whether it trains.
if (exported) show();
else known.then(show);
