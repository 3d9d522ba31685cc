// Asks a run's model: in the page if it is small, so that no server is needed and a training takes nothing from it; else by
// the server. Both give the same fields.

import { ask, Epochs, exported, flip, modelOf, weightsOf } from "./api.js";
import { askedOf } from "./model/asked.js";
import { flipped } from "./model/flip.js";
import { loadModel, ModelError } from "./model/model.js";
import { otherPrior, Reasons } from "./views/reasons.js";

const KEPT = 4;
// Heads, over all layers, of which attention is shown.
const MOST_ATTENTION = 64;

export class Asker {
  constructor(run) {
    this.run = run;
    this.epochs = new Epochs(run.id);
    this.models = new Map();
  }

  // The prior at the far end of the slider: {name, says, own, offsets}; null if there is none to offer.
  async prior(epoch) {
    return (await this.model(epoch)).prior;
  }

  // The operands as texts: beyond 2^53 only the server reads them. `share` is how far to go from the training's prior to the
  // one that is offered.
  async ask(a, b, epoch, share) {
    const model = await this.model(epoch);
    if (model.network) {
      try {
        return this.asked(model, Number(a), Number(b), epoch, share);
      } catch (error) {
        if (exported || !(error instanceof ModelError)) throw error;
      }
    }
    return ask(this.run.id, a, b, epoch, model.prior && { prior: model.prior.name, share });
  }

  // Divisibility of a by p flipped where the mechanism says that it is carried.
  async flip(mechanism, p, a, b) {
    const { network, reasons } = await this.model(mechanism.epoch);
    return network ? flipped(network, reasons, mechanism, p, Number(a), Number(b)) : flip(this.run.id, p, a, b);
  }

  asked({ network, reasons, prior }, a, b, epoch, share) {
    const own = decided(network, prior, prior?.own ?? 0, a, b);
    const asked = !prior || share === prior.own ? own : decided(network, prior, share, a, b);
    const { truth, prediction } = asked;
    return {
      ...asked,
      run: this.run.id,
      epoch,
      own: own.prediction,
      rule: reasons.rule(truth),
      reason: prediction === own.prediction ? reasons.reason(truth, prediction) : otherPrior(truth, prediction, own.prediction),
      attention: asked.attention && attentionView(asked.attention),
    };
  }

  // The model of an epoch, loaded once: {network, reasons, prior}; without a network the server has to be asked.
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
    const fetchRest = () => Promise.all([weightsOf(this.run.id, epoch), this.epochs.get(epoch)]);
    const early = exported ? fetchRest() : null;
    early?.catch(() => null);
    const { in_page: small, config, prior } = await modelOf(this.run.id, epoch);
    if (!exported && !small) return { network: null, prior };
    const [weights, rules] = await (early ?? fetchRest());
    try {
      return { network: loadModel({ weights, config }), reasons: new Reasons(rules, this.run.threshold), prior };
    } catch (error) {
      if (exported || !(error instanceof ModelError)) throw error;
      return { network: null, prior };
    }
  }
}

// The answer a share of the way from the training's prior. At the training's own it is greedy, as the run decides without a
// prior; the best answers are listed there too.
function decided(network, prior, share, a, b) {
  if (!prior) return askedOf(network, a, b);
  const offsets = Float64Array.from(prior.offsets, (offset) => (offset === null ? -Infinity : offset * share));
  if (share) return askedOf(network, a, b, { prior: offsets });
  return { ...askedOf(network, a, b), candidates: network.ask(a, b, { prior: offsets }).candidates };
}

function attentionView(attention) {
  const patterns = (layers) => {
    const heads = Math.floor(MOST_ATTENTION / Math.max(layers.length, 1)) || 1;
    return layers.map((layer) => layer.slice(0, heads).map((head) => head.map((row) => Array.from(row))));
  };
  return Object.fromEntries(Object.entries(attention).map(([side, layers]) => [side, patterns(layers)]));
}
