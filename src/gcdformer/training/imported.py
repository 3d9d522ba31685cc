"""Weights from elsewhere as a run folder, evaluated once, so that `evaluate`, `explain`, `predict` and `lab` take it.

Such a run cannot be resumed, since there is no optimiser; `--init-from` starts a new one from it.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from time import perf_counter
from typing import cast

import torch
from torch import Tensor

from gcdformer.config import Config
from gcdformer.data import Problem
from gcdformer.data.testsets import test_sets
from gcdformer.errors import UserError
from gcdformer.evaluation.evaluate import evaluate
from gcdformer.evaluation.predictor import Predictor
from gcdformer.runs.checkpoint import Checkpoint, TrainingState, load_model, save_checkpoint
from gcdformer.runs.explain import explain_evaluation
from gcdformer.runs.folder import RunFolder
from gcdformer.runs.metrics import Line
from gcdformer.runs.run import Run
from gcdformer.training.loop import score_line
from gcdformer.training.session import check_folder


def save_imported(config: Config, weights: dict[str, Tensor], source: Path, origin: str, out: Path,
                  on_share: Callable[[float], None] = lambda share: None) -> Run:
    """Check the weights, evaluate the model, write the run. Its loss is that of the natural set, as no other is known."""
    folder, problem = RunFolder(out), Problem.of(config)
    check_folder(folder)
    if folder.exists():
        raise UserError(f"to: {out} holds a run already; name a new folder")
    model = load_model(config, problem, weights, source)
    sets = test_sets(config, problem, 1)
    total, began = sum(map(len, sets.values())), perf_counter()
    with folder.locked():
        folder.write_config(config, {"imported_from": origin})
        evaluation = evaluate(Predictor(model.eval(), problem, torch.device("cpu")), sets, config.evaluation.threshold,
                         lambda done: on_share(done / total))
        assert evaluation.scores is not None, "only GCD models are imported"
        step = config.training.steps_per_epoch
        scored = score_line(evaluation.scores, explain_evaluation(config, evaluation.tables), [])
        scored["predictions_sha256"] = folder.write_predictions(1, evaluation.tables)
        seconds = perf_counter() - began
        line = {"epoch": 1, "step": step, "examples": step * config.training.batch_size, "loss": evaluation.loss,
                "test_loss": evaluation.loss, **scored, "seconds": seconds, "throughput": None}
        save_checkpoint(out, Checkpoint(weights, {}, TrainingState(step, 1, seconds)))
        folder.append_metrics(cast(Line, line))  # no step was taken, so there is no learning rate
    return Run(out)
