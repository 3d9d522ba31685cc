// A run of the ledger: the page of a run, as far as the ledger holds it. It has the tables of the last epoch and no weights.

import { ledgerRun } from "../api.js";
import { integer } from "../route.js";
import { otherTask, RunPage } from "./run.js";

export async function ledgerView(place, { id, params }, context, signal) {
  const run = await ledgerRun(id);
  if (!run.has_gcd) return otherTask(place, run, signal);
  const page = new RunPage(place, run, null, signal);
  page.epochs.loaded.set(run.last.epoch, run.last);
  page.chosen = integer(params, "k");
  await page.go(run.last.epoch, { write: false });
}
