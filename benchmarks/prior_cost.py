"""What deciding under a prior costs: a run's natural test set answered greedily and under each prior, in turn, one thread.

    python benchmarks/prior_cost.py RUN --repeats 15

Thread time is compared, which other processes hardly change; each round asks every prior once, so that whatever else happens
to the machine happens to all. Prints for each prior the median and the quartiles of its ratio to greedy decoding in a round.
"""

from __future__ import annotations

import argparse
import sys
from time import thread_time

import numpy as np

from gcdformer import load_run


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("run", help="run folder with weights")
    parser.add_argument("--priors", default="natural,1,0.5", help="with commas between")
    parser.add_argument("--pairs", type=int, default=100_000)
    parser.add_argument("--repeats", type=int, default=15)
    args = parser.parse_args()
    run = load_run(args.run)
    priors = ["training", *args.priors.split(",")]
    predictors = {prior: run.predictor(prior=prior) for prior in priors}
    questions = np.random.default_rng(0).integers(1, run.config.task.maximum, (args.pairs, 2), endpoint=True)
    for predictor in predictors.values():
        predictor.threads = 1
        predictor.tokens(questions)
    seconds = {prior: np.zeros(args.repeats) for prior in priors}
    for repeat in range(args.repeats):
        for prior in np.roll(priors, repeat).tolist():  # none is always the first
            began = thread_time()
            predictors[prior].tokens(questions)
            seconds[prior][repeat] = thread_time() - began
    greedy = seconds["training"]
    print(f"{args.run}: base {run.config.task.base}, {args.pairs:,} pairs, greedy {np.median(greedy):.3f} s")
    for prior in priors[1:]:
        low, middle, high = np.quantile(seconds[prior] / greedy, [0.25, 0.5, 0.75])
        print(f"  {prior:>8}: {middle:.3f} times greedy ({low:.3f} to {high:.3f}); least of all rounds "
              f"{seconds[prior].min() / greedy.min():.3f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
