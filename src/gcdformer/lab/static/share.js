// Sharing a figure: a link to the page as it stands, and an iframe that shows nothing but the figure (`only` in the address).

import { exported } from "./api.js";
import { announce, h } from "./dom.js";
import { downloadButtons } from "./download.js";
import { link, read } from "./route.js";

// The address of what is shown now; `only` is the name of a figure, null for the whole page.
function address(only) {
  const { view, id, params } = read();
  const url = new URL(location.href);
  url.hash = link(view, id, { ...Object.fromEntries(params), only });
  return url.href;
}

const escaped = (text) => text.replaceAll("&", "&amp;").replaceAll('"', "&quot;").replaceAll("<", "&lt;");

export const embedCode = (only, title, height) =>
  `<iframe src="${escaped(address(only))}" title="${escaped(title)}" width="100%" height="${height}" style="border: 0" loading="lazy"></iframe>`;

// A figure that can stand by itself, under the name `only`: what is drawn (an `element` and the `rows()` of its CSV), anything
// that belongs to it, and the buttons below.
export function sharedFigure(only, title, height, drawn, ...more) {
  const element = h("div", { "data-figure": only }, drawn.element, more);
  return [element, shareButtons(only, title, height, downloadButtons(title, { element, rows: () => drawn.rows() }))];
}

// Buttons below a figure. The lab's own server lets no page embed it, so that only exported pages have code for that.
export function shareButtons(only, title, height, downloads = null) {
  const note = h("span", { role: "status" });
  const copy = (text, make) => h("button", { type: "button", class: "plain", text, onclick: () => put(make(), note) });
  return h("p", { class: "share" },
    copy("Copy link", () => address(null)),
    exported && copy("Copy embed code", () => embedCode(only, title, height)),
    downloads,
    note);
}

// To the clipboard; where that is not allowed, into a field from which it can be copied.
async function put(text, note) {
  try {
    await navigator.clipboard.writeText(text);
    note.textContent = "copied";
  } catch {
    const field = h("input", { readonly: true, value: text, "aria-label": "To copy" });
    note.replaceChildren(field);
    field.select();
  }
  announce(note.textContent);
}

// A page that embeds a figure is told how high the figure is, so that it can make the frame fit.
const heights = new ResizeObserver(() => window.parent.postMessage({ gcdformer: { height: Math.ceil(document.body.getBoundingClientRect().height) } }, "*"));

// Hide all of a view but one figure and the epoch slider that drives it; a link leads to the whole page. Does nothing if the
// view has no figure of this name.
export function showOnly(place, only) {
  const figure = only && [...place.querySelectorAll("[data-figure]")].find((element) => element.dataset.figure === only);
  if (figure) document.body.dataset.only = only;
  else delete document.body.dataset.only;
  if (!figure) return;
  for (let node = figure; node !== place; node = node.parentElement)
    for (const sibling of node.parentElement.children)
      if (sibling !== node && !sibling.contains(figure)) sibling.classList.toggle("left-out", !sibling.matches(".player, .hero"));
  const whole = h("a", { href: "#", target: "_blank", rel: "noopener", text: "Open the whole page" });
  whole.addEventListener("pointerdown", () => (whole.href = address(null)));
  whole.addEventListener("focus", () => (whole.href = address(null)));
  place.append(h("p", { class: "share" }, whole));
  if (window.parent !== window) heights.observe(document.body);
  place.addEventListener("click", ({ target }) => target.closest("a[href]")?.setAttribute("target", "_blank"));
}
