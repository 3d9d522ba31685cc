"""What the server of forked.py has loaded before it forks: a training of one step with its report, by the command line.

So its processes have torch, its optimisers, the compiled training step and the figures from their first moment.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import torch

import forked  # noqa: F401 - its functions are what the processes run
from gcdformer.cli import main

torch.set_num_threads(1)  # threads of the server would be missing in the processes that it forks
SMALLEST = ["--base", "10", "--max", "100", "--dim", "16", "--heads", "2", "--batch-size", "4", "--epoch-size", "4",
            "--test-size", "100", "--max-epochs", "1", "--threads", "1", "--device", "cpu", "--schedule", "constant"]

with tempfile.TemporaryDirectory() as folder:
    code = main(["train", "--out", str(Path(folder) / "run"), "--quiet", *SMALLEST])
    assert code == 0, "the server of forked.py could not train"
