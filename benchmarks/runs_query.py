"""Times `gcdformer runs` on many synthetic run folders: the first query, which makes the index, and the next ones.

    python benchmarks/runs_query.py [--runs 10000] [--epochs 10]
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from gcdformer import preset
from gcdformer.runs.files import sha256
from gcdformer.runs.folder import HEADER
from gcdformer.runs.metrics import to_text


def write_run(path: Path, base: int, seed: int, epochs: int) -> None:
    """A run folder as training leaves it, but for weights and tables; not synced to disk."""
    path.mkdir()
    body = '[gcdformer]\nversion = "0"\n\n' + preset("fast").replace(base=base, seed=seed, horizon=9999).to_toml()
    (path / "config.toml").write_text(f"{HEADER}{sha256(body.encode())}\n{body}")
    divisors = [k for k in range(1, 101) if base % k == 0]
    lines = [{"epoch": epoch, "step": 1000 * epoch, "examples": 256_000 * epoch, "loss": 1 / epoch, "learning_rate": 1e-3,
              "test_loss": 1 / epoch, "accuracy": 90 + (seed + epoch) % 10, "stratified_accuracy": 50.0,
              "n_correct": len(divisors), "n_modal": len(divisors), "correct": divisors, "D": divisors, "being_learned": [],
              "events": {"entered": [], "left": []}, "predictions_sha256": "0" * 64, "seconds": 30.0 * epoch,
              "throughput": 10_000.0} for epoch in range(1, epochs + 1)]
    (path / "metrics.jsonl").write_text("".join(map(to_text, lines)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=10_000)
    parser.add_argument("--epochs", type=int, default=10)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        for index in range(args.runs):
            write_run(root / f"fast_base-{2 + index // 3}_seed-{index % 3}", 2 + index // 3, index % 3, args.epochs)
        queries = [("first query, makes the index", ["--group-by", "outcomes"]),
                   ("again", ["--group-by", "outcomes"]),
                   ("filter, best of seeds, sort", ["--where", "base > 100", "--best-of-seeds", "--sort", "base",
                                                    "--limit", "20"]),
                   ("all runs as CSV", ["--format", "csv"])]
        for name, words in queries:
            began = time.perf_counter()
            subprocess.run([sys.executable, "-m", "gcdformer", "runs", folder, *words], check=True,
                           stdout=subprocess.DEVNULL)
            print(f"{name}: {time.perf_counter() - began:.2f} s for {args.runs:,} runs of {args.epochs} epochs")


if __name__ == "__main__":
    main()
