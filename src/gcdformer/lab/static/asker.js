// Asks a run's model: in the page if it is small, so that no server is needed and a training takes nothing from it; else by
// the server. Both give the same fields.

import { ask, Epochs, exported, modelOf, weightsOf } from "./api.js";
import { askedOf } from "./model/asked.js";
import { loadModel, ModelError } from "./model/model.js";
import { Reasons } from "./views/reasons.js";

const KEPT = 4;
// Heads, over all layers, of which attention is shown.
const MOST_ATTENTION = 64;

export class Asker {
  constructor(run) {
    this.run = run;
    this.epochs = new Epochs(run.id);
    this.models = new Map();
  }

  // The operands as texts: beyond 2^53 only the server reads them.
  async ask(a, b, epoch) {
    const model = await this.model(epoch);
    if (model) {
      try {
        return this.asked(model, a, b, epoch);
      } catch (error) {
        if (exported || !(error instanceof ModelError)) throw error;
      }
    }
    return ask(this.run.id, a, b, epoch);
  }

  asked({ network, reasons }, a, b, epoch) {
    const asked = askedOf(network, Number(a), Number(b));
    return {
      ...asked,
      run: this.run.id,
      epoch,
      rule: reasons.rule(asked.truth),
      reason: reasons.reason(asked.truth, asked.prediction),
      attention: asked.attention && attentionView(asked.attention),
    };
  }

  // The model of an epoch, loaded once; null if the server has to be asked.
  model(epoch) {
    if (!this.models.has(epoch)) {
      const loading = this.load(epoch);
      loading.catch(() => this.models.delete(epoch));
      this.models.set(epoch, loading);
      if (this.models.size > KEPT) this.models.delete(this.models.keys().next().value);
    }
    return this.models.get(epoch);
  }

  async load(epoch) {
    const view = await modelOf(this.run.id, epoch);
    if (!exported && !view.in_page) return null;
    const [weights, rules] = await Promise.all([weightsOf(this.run.id, epoch), this.epochs.get(epoch)]);
    try {
      return { network: loadModel({ weights, config: view.config }), reasons: new Reasons(rules, this.run.threshold) };
    } catch (error) {
      if (exported || !(error instanceof ModelError)) throw error;
      return null;
    }
  }
}

function attentionView(attention) {
  const patterns = (layers) => {
    const heads = Math.floor(MOST_ATTENTION / Math.max(layers.length, 1)) || 1;
    return layers.map((layer) => layer.slice(0, heads).map((head) => head.map((row) => Array.from(row))));
  };
  return Object.fromEntries(Object.entries(attention).map(([side, layers]) => [side, patterns(layers)]));
}
