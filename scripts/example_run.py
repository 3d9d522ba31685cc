"""Makes the runs that the lab shows when there are no others: `python scripts/example_run.py` (four minutes).

Two real trainings with short epochs, so that the slider shows every step: one in base 30 whose sieve grows, and one in base
256 = 2^8 in which nothing is learned for fifteen epochs after the powers of 2, until 3, which does not divide the base, is
grokked, and its products with it. Each is reduced to what the page needs: every prediction table and the weights of the last
epoch, no optimizer state (so it can be asked but not resumed). Each has its mechanism
beside it. Name one to make only that; `--run DIR` takes a finished run of its configuration instead of training one.
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
from pathlib import Path

from gcdformer import Run, train
from gcdformer.config import Config
from gcdformer.errors import UserError
from gcdformer.lab.catalogue import EXAMPLES
from gcdformer.runs.checkpoint import Checkpoint, load_checkpoint, save_checkpoint
from gcdformer.runs.files import remove_folder
from gcdformer.runs.folder import checkpoint_path
from gcdformer.runs.mechanism import NAME, mechanism, write_mechanism

LARGEST = {"example": 2_000_000, "example-grokking": 1_000_000}


def recipes() -> dict[str, Config]:
    """The configuration of each example, spelled out: a preset may change, a bundled run does not."""
    common = Config().derive(operands="uniform", layers=1, heads=4, optimizer="muon", lr=1e-3, batch_size=256,
                             test_size=20_000, threads=1, device="cpu")
    return {
        "example": common.derive(base=30, outcomes="log-uniform", dim=64, schedule="cosine", warmup=300, horizon=2400,
                                 epoch_size=15_360, max_epochs=40),
        "example-grokking": common.derive(base=256, maximum=65_535, outcomes="natural", repeat_share=0.5,
                                          repeat_size=20_000, dim=48, weight_decay=0.2, schedule="constant",
                                          warmup=500, epoch_size=51_200, max_epochs=26)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"which ones: {', '.join(EXAMPLES)} (default: all)")
    parser.add_argument("--run", type=Path, metavar="DIR", help="a finished run of the one example that is named")
    args = parser.parse_args()
    names = args.names or list(EXAMPLES)
    if set(names) - set(EXAMPLES) or args.run and len(names) != 1:
        parser.error(f"name {'one' if args.run else 'some'} of {', '.join(EXAMPLES)}")
    for name in names:
        make(name, args.run)


def make(name: str, finished: Path | None) -> None:
    """Train the example (or take a finished run), reduce it, and put it into the package."""
    config, target = recipes()[name], EXAMPLES[name].path
    with tempfile.TemporaryDirectory() as parent:
        path = Path(parent) / name
        run = Run(shutil.copytree(finished, path)) if finished else train(config, path)
        if run.config.identity() != config.identity() or len(run.metrics) != config.limits.max_epochs:
            raise UserError(f"{finished}: not a finished run of the configuration of '{name}'")
        keep_last_weights(run)
        write_mechanism(run.path / NAME, mechanism(run))
        if target.exists():
            shutil.rmtree(target)
        shutil.copytree(run.path, target, ignore=shutil.ignore_patterns("lock", "report.html"))
    size = sum(path.stat().st_size for path in target.rglob("*") if path.is_file())
    assert size < LARGEST[name], f"{size} bytes are too many for the package"
    last = Run(target).metrics[-1]
    print(f"{target}: {size / 1e6:.2f} MB, {last['epoch']} epochs, {last['n_correct']} correct, {last['accuracy']:.1f} %")


def keep_last_weights(run: Run) -> None:
    """Drop every checkpoint but the last epoch's, and that one's optimizer state."""
    step = run.checkpoint_step()
    last = load_checkpoint(run.path, step)
    remove_folder(checkpoint_path(run.path, step).parent)
    save_checkpoint(run.path, Checkpoint(last.model, {}, last.state))


if __name__ == "__main__":
    main()
