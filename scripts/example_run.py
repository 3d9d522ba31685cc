"""Makes the example run that the lab opens when there are no runs: `python scripts/example_run.py` (some four minutes).

A real training in base 420 with every prediction table, reduced to what the page needs: the weights of its last epoch,
no optimiser (so it can be asked but not trained further). Writes src/gcdformer/lab/example.
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
    parser.add_argument("--threads", type=int, default=1)
    args = parser.parse_args()
    config = preset("demo").replace(max_minutes=None, max_epochs=24, epoch_size=80_000, test_size=20_000,
                                    threads=args.threads, device="cpu", keep_checkpoints=1)
    with tempfile.TemporaryDirectory() as parent:
        run = train(config, Path(parent) / "example")
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
