// The lab's JSON API; in an exported page the same data from files beside it.

export const fromFiles = document.body.dataset.source === "files";

export class Refused extends Error {
  constructor(message, status, damaged) {
    super(message);
    this.status = status;
    this.damaged = damaged;
  }
}

async function request(url, options = {}) {
  let response;
  try {
    response = await fetch(url, { cache: "no-cache", ...options });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Refused("The lab does not answer: is it still running?", 0, false);
  }
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

const run = (id) => `api/runs/${encodeURIComponent(id)}`;

export const about = async () => (await request(fromFiles ? "data/about.json" : "api/about")).body;
export const runs = () => request(fromFiles ? "data/runs.json" : "api/runs");

// The list as the page found it when it was opened: asked for at once, used once; not at all if the link leads elsewhere.
let opened = /^#\/(run|mechanism|ask|compare|train|paper)\b/.test(location.hash) ? null : runs();
opened?.catch(() => null);
export const firstRuns = () => opened ?? runs();
export const forgetFirstRuns = () => {
  opened = null;
};
export const oneRun = (id) => request(fromFiles ? "data/run.json" : run(id));
export const bands = async (id, epoch) =>
  (await request(fromFiles ? `data/bands/${epoch}.json` : `${run(id)}/bands?epoch=${epoch}`)).body;
export const mechanism = async (id) => (await request(fromFiles ? "data/mechanism.json" : `${run(id)}/mechanism`)).body;
export const flip = async (id, p, a, b) => (await request(`${run(id)}/flip?${new URLSearchParams({ p, a, b })}`)).body;
export const paper = async () => (await request("api/paper")).body;
export const ask = async (id, a, b, epoch, options) =>
  (await request(`${run(id)}/ask?${new URLSearchParams({ a, b, ...(epoch ? { epoch } : {}) })}`, options)).body;
export const surprise = async (id, epoch) => (await request(`${run(id)}/surprise${epoch ? `?epoch=${epoch}` : ""}`)).body;
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
      const url = fromFiles ? `data/epochs/${epoch}.json` : `${run(this.id)}/epochs/${epoch}`;
      const promise = request(url).then(({ body }) => {
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
  if (fromFiles) return;
  const turn = async () => {
    if (signal.aborted) return;
    if (document.visibilityState === "visible") await look();
    if (!signal.aborted) setTimeout(turn, milliseconds);
  };
  setTimeout(turn, milliseconds);
}
