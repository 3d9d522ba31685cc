// Downloads where a figure or table stands: PNG at twice the size, SVG with its colours written out, CSV with a header. All is
// made in the page. Knows elements and rows, no run.

import { h } from "./dom.js";
import { pictureOf } from "./figures/picture.js";
import { read } from "./route.js";

const SCALE = 2;

// Buttons for a figure: `element` is drawn, `rows()` are those of the CSV, its heads first.
export function downloadButtons(title, { element, rows }) {
  const kinds = {
    PNG: () => png(pictureOf(element, title)),
    SVG: () => new Blob([pictureOf(element, title).svg], { type: "image/svg+xml" }),
    CSV: () => csv(rows()),
  };
  return h("span", { class: "downloads" }, "Download ", Object.entries(kinds).map(([kind, make]) => button(title, kind, make)));
}

// A table with a button for its CSV below: what its cells say, numbers as numbers.
export function savedTable(title, region) {
  const rows = () => [...region.querySelectorAll("tr")].map((row) => [...row.cells].map((cell) => cell.textContent));
  return [region, csvButton(title, rows)];
}

// A button for the CSV alone, of what a picture would not show as the page does.
export const csvButton = (title, rows) =>
  h("p", { class: "share" }, h("span", { class: "downloads" }, "Download ", button(title, "CSV", () => csv(rows()))));

const button = (title, kind, make) =>
  h("button", { type: "button", class: "plain", "aria-label": `Download ${title} as ${kind}`, text: kind, onclick: async () => save(await make(), fileName(title, kind)) });

function fileName(title, kind) {
  const epoch = read().params.get("epoch");
  const words = `${title}${epoch ? ` epoch ${epoch}` : ""}`.replaceAll(/[^\p{L}\p{N}._-]+/gu, "-");
  return `${words}.${kind.toLowerCase()}`;
}

function save(blob, name) {
  const url = URL.createObjectURL(blob);
  h("a", { href: url, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}

async function png({ svg, width, height }) {
  const image = h("img", { src: `data:image/svg+xml,${encodeURIComponent(svg)}` });
  await image.decode();
  const canvas = h("canvas", { width: SCALE * width, height: SCALE * height });
  canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
  return new Promise((resolve) => canvas.toBlob(resolve, "image/png"));
}

const csv = (rows) => new Blob([rows.map((row) => `${row.map(cell).join(",")}\r\n`).join("")], { type: "text/csv" });

// A name that begins like a formula must not be computed by the program that opens the file.
function cell(value) {
  const text = `${value ?? ""}`.replaceAll("\u00a0", " ");
  if (/^-?\d{1,3}(,\d{3})+$/.test(text)) return text.replaceAll(",", "");
  const plain = Number.isFinite(Number(text)) ? text : text.replace(/^[=+@\t\r-]/, "'$&");
  return /[",\r\n]/.test(plain) ? `"${plain.replaceAll('"', '""')}"` : plain;
}
