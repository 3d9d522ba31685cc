"""Makes the example run that the lab opens when there are no runs: `python scripts/example_run.py` (some two minutes).

A real training in base 30 with short epochs, so that the slider shows every step, and every prediction table; reduced to
what the page needs: the weights of its last epoch, no optimiser (so it can be asked but not trained further). Writes
src/gcdformer/lab/example. `--run DIR` takes a finished run of the same configuration instead of training one.
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
from pathlib import Path

from gcdformer import Run, train
from gcdformer.experiments.presets import preset
from gcdformer.runs.checkpoint import Checkpoint, checkpoint_path, load_checkpoint, save_checkpoint
from gcdformer.runs.files import remove_folder

TARGET = Path(__file__).parent.parent / "src" / "gcdformer" / "lab" / "example"
LARGEST = 2_000_000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--run", type=Path, metavar="DIR", help="a finished run of the example's configuration")
    args = parser.parse_args()
    config = preset("demo").replace(base=30, operands="uniform", optimizer="muon", lr=1e-3, warmup=300, horizon=2400,
                                    max_minutes=None, max_epochs=40, epoch_size=15_360, test_size=20_000, threads=1,
                                    device="cpu")
    with tempfile.TemporaryDirectory() as parent:
        path = Path(parent) / "example"
        run = Run(shutil.copytree(args.run, path)) if args.run else train(config, path)
        assert run.config.identity() == config.identity(), "another configuration than the example's"
        assert len(run.metrics) == config.limits.max_epochs, "the run is not finished"
        keep_last_weights(run)
        if TARGET.exists():
            shutil.rmtree(TARGET)
        shutil.copytree(run.path, TARGET, ignore=shutil.ignore_patterns("lock", "report.html"))
    size = sum(path.stat().st_size for path in TARGET.rglob("*") if path.is_file())
    assert size < LARGEST, f"{size} bytes are too many for the package"
    last = Run(TARGET).metrics[-1]
    print(f"{TARGET}: {size / 1e6:.2f} MB, {last['epoch']} epochs, {last['n_correct']} correct, {last['accuracy']:.1f} %")


def keep_last_weights(run: Run) -> None:
    """Drop every checkpoint but the last epoch's, and that one's optimiser."""
    step = run.checkpoint_step()
    last = load_checkpoint(run.path, step)
    remove_folder(checkpoint_path(run.path, step).parent)
    save_checkpoint(run.path, Checkpoint(last.model, {}, last.state))


if __name__ == "__main__":
    main()
