"""What averaged weights and the natural prior do, alone and together, for each stored epoch of some runs.

    gcdformer train demo --keep-checkpoints 1000 --seed S --out runs/demo-S
    python benchmarks/averages_and_priors.py runs/demo-0 runs/demo-1 runs/demo-2

Prints, for each run, how accuracy and D change over its stored epochs: how far accuracy falls between one evaluation and the
next in all, how many k leave D, and how many epochs are certified. `--csv FILE` has a line for each epoch.
"""

from __future__ import annotations

import argparse
import csv
import sys
from itertools import pairwise, product
from pathlib import Path

from gcdformer import Run
from gcdformer.data.testsets import test_sets
from gcdformer.evaluation.evaluate import prediction_tables
from gcdformer.explanation import Explanation
from gcdformer.runs.explain import explain_evaluation
from gcdformer.runs.folder import epochs_with_weights

PRIORS = ("training", "natural")


def explained(run: Run, epoch: int, prior: str, averaged: bool) -> Explanation:
    """The certificate of a stored epoch's weights, or of their average, under a prior."""
    predictor = run.predictor(epoch, prior=prior, averaged=averaged)
    return explain_evaluation(run.config, prediction_tables(predictor, test_sets(run.config, run.problem, epoch)))


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("runs", nargs="+")
    parser.add_argument("--csv", type=Path, help="a line for each run, epoch, prior and kind of weights")
    args = parser.parse_args()
    rows = []
    for path in args.runs:
        run = Run(path)
        epochs = sorted(epochs_with_weights(run.path, run.config.training.steps_per_epoch))
        print(f"{path}: epochs {epochs[0]} to {epochs[-1]}, {len(epochs)} of them stored")
        for averaged, prior in product((False, True), PRIORS):
            course = [explained(run, epoch, prior, averaged) for epoch in epochs]
            rows += [(path, epoch, prior, averaged, each.measured_accuracy, len(each.correct), each.certified)
                     for epoch, each in zip(epochs, course, strict=True)]
            accuracy = [each.measured_accuracy for each in course]
            changes = [len(set(one.correct) ^ set(other.correct)) for one, other in pairwise(course)]
            losses = [len(set(one.correct) - set(other.correct)) for one, other in pairwise(course)]
            falls = [max(0.0, one - other) for one, other in pairwise(accuracy)]
            kind = "average" if averaged else "weights"
            print(f"  {kind}, {prior} prior: accuracy {accuracy[0]:.1f} to {accuracy[-1]:.1f} %, "
                  f"falls by {sum(falls):.1f} points in all; {len(course[-1].correct)} GCD, {sum(losses)} lost of "
                  f"{sum(changes)} changes; {sum(each.certified for each in course)} epochs certified")
    if args.csv:
        with args.csv.open("w", newline="") as file:
            csv.writer(file).writerows([("run", "epoch", "prior", "averaged", "accuracy", "n_correct", "certified"), *rows])
    return 0


if __name__ == "__main__":
    sys.exit(main())
