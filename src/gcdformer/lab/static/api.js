// The lab's JSON API. An exported page has the same data in files beside it, or inside it if it is a single file.

export const exported = document.body.dataset.source !== "server";
// A single file's files by their paths, each compressed and as base64.
const inside = document.body.dataset.source === "inside" ? JSON.parse(document.getElementById("files").textContent) : null;

export class Refused extends Error {
  constructor(message, status, damaged) {
    super(message);
    this.status = status;
    this.damaged = damaged;
  }
}

async function fetched(url, options) {
  if (inside) return unpacked(url);
  try {
    return await fetch(url, { cache: "no-cache", ...options });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Refused(exported ? `${url} cannot be read.` : "The lab does not answer: is it still running?", 0, false);
  }
}

function unpacked(path) {
  if (!Object.hasOwn(inside, path)) throw new Refused(`${path} is not in this page.`, 404, false);
  const packed = Uint8Array.from(atob(inside[path]), (character) => character.charCodeAt(0));
  return new Response(new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip")));
}

async function request(url, options = {}) {
  const response = await fetched(url, options);
  let body = null;
  try {
    body = await response.json();
  } catch {
    throw new Refused(`The answer from ${url} is not JSON (status ${response.status}).`, response.status, false);
  }
  if (!response.ok)
    throw new Refused(body.error ?? `Refused with status ${response.status}.`, response.status, Boolean(body.damaged));
  return { body, tag: response.headers.get("etag") };
}

async function bytes(url) {
  const response = await fetched(url);
  if (!response.ok) throw new Refused(`The weights cannot be read (status ${response.status}).`, response.status, false);
  return response.arrayBuffer();
}

const run = (id) => `api/runs/${encodeURIComponent(id)}`;

export const about = async () => (await request(exported ? "data/about.json" : "api/about")).body;
export const runs = () => request(exported ? "data/runs.json" : "api/runs");

// Where an exported page has what belongs to a run: by its place in the list, since a name may not be fit for a path.
const order = exported ? runs().then(({ body }) => body.runs.map((listed) => listed.id)) : null;
order?.catch(() => null);
async function folder(id) {
  const place = (await order).indexOf(id);
  if (place < 0) throw new Refused(`run: there is none called '${id}' in this page`, 404, false);
  return `data/runs/${place}`;
}

// The list as the page found it when it was opened: asked for at once, used once; not at all if the link leads elsewhere.
let opened = /^#\/(run|mechanism|ask|compare|train|paper|ledger)\b/.test(location.hash) ? null : runs();
opened?.catch(() => null);
export const firstRuns = () => opened ?? runs();
export const forgetFirstRuns = () => {
  opened = null;
};
export const oneRun = async (id) => request(exported ? `${await folder(id)}/run.json` : run(id));
const oneEpoch = async (id, epoch) =>
  (await request(exported ? `${await folder(id)}/epochs/${epoch}.json` : `${run(id)}/epochs/${epoch}`)).body;
export const modelOf = async (id, epoch) =>
  (await request(exported ? `${await folder(id)}/models/${epoch}.json` : `${run(id)}/model?epoch=${epoch}`)).body;
export const weightsOf = async (id, epoch) =>
  bytes(exported ? `${await folder(id)}/models/${epoch}.safetensors` : `${run(id)}/weights?epoch=${epoch}`);
export const bands = async (id, epoch) =>
  (await request(exported ? `${await folder(id)}/bands/${epoch}.json` : `${run(id)}/bands?epoch=${epoch}`)).body;
// An epoch under another prior than the run's own. The server asks the model, and `onProgress` hears how far it is: 0..1.
export async function decided(id, epoch, prior, onProgress, signal) {
  const path = exported
    ? `${await folder(id)}/decided/${epoch}-${prior}.json`
    : `${run(id)}/decided?${new URLSearchParams({ epoch, prior })}`;
  for (;;) {
    const { body } = await request(path, { signal });
    if (body.error) throw new Refused(body.error, 0, false);
    if (body.details) return body.details;
    onProgress(body.done);
  }
}
export const mechanismOf = async (id) => (await request(exported ? `${await folder(id)}/mechanism.json` : `${run(id)}/mechanism`)).body;
export const flip = async (id, p, a, b) => (await request(`${run(id)}/flip?${new URLSearchParams({ p, a, b })}`)).body;
const paperPart = async (path) =>
  (await request(exported ? `data/paper${path}.json` : `api/paper${path}`)).body;
export const paper = () => paperPart("");
export const paperTable = (id) => paperPart(`/tables/${encodeURIComponent(id)}`);
export const paperClaim = (name) => paperPart(`/claims/${encodeURIComponent(name)}`);
export const ledgerRun = (name) => paperPart(`/runs/${encodeURIComponent(name)}`);
export const ask = async (id, a, b, epoch, prior) =>
  (await request(`${run(id)}/ask?${new URLSearchParams({ a, b, epoch, ...prior })}`)).body;

// A pair on which the model breaks its rules: {a, b}, nulls if none is known. An exported page knows the first few.
export async function surprise(id, epoch) {
  if (!exported) return (await request(`${run(id)}/surprise?epoch=${epoch}`)).body;
  const { counterexamples } = await oneEpoch(id, epoch);
  return counterexamples[Math.floor(Math.random() * counterexamples.length)] ?? { a: null, b: null };
}
export const trainings = async () => (await request("api/trainings")).body.trainings;
export const startTraining = async (order) =>
  (
    await request("api/trainings", {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify(order),
    })
  ).body;
export const stopTraining = async (id) =>
  (await request(`api/trainings/${encodeURIComponent(id)}`, { method: "DELETE" })).body;

// The epochs of one run, each fetched once; `ahead` asks for some before they are needed, one after another, until it is
// called again.
export class Epochs {
  constructor(id) {
    this.id = id;
    this.loaded = new Map();
    this.asked = new Map();
  }

  now(epoch) {
    return this.loaded.get(epoch) ?? null;
  }

  get(epoch) {
    if (!this.asked.has(epoch)) {
      const promise = oneEpoch(this.id, epoch).then((body) => {
        this.loaded.set(epoch, body);
        return body;
      });
      promise.catch(() => this.asked.delete(epoch));
      this.asked.set(epoch, promise);
    }
    return this.asked.get(epoch);
  }

  async ahead(wanted) {
    const turn = (this.turn = (this.turn ?? 0) + 1);
    for (const epoch of wanted) {
      if (this.turn !== turn) return;
      if (!this.loaded.has(epoch)) await this.get(epoch).catch(() => null);
    }
  }
}

// Call `look` every so often while the page is in sight, until `signal` is aborted.
export function repeat(look, milliseconds, signal) {
  if (exported) return;
  const turn = async () => {
    if (signal.aborted) return;
    if (document.visibilityState === "visible") await look();
    if (!signal.aborted) setTimeout(turn, milliseconds);
  };
  setTimeout(turn, milliseconds);
}
