"""A run's model as a Hugging Face style folder: config.json, model.safetensors, a card; and such a folder as a model again.

The folder says all that is needed to ask the model: its configuration, its vocabulary, its weights bit for bit. Paths of the
machine it was trained on are left out. Loading executes nothing.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load, save

from gcdformer.config import FILE_TASK, Config
from gcdformer.data import Problem
from gcdformer.errors import DamagedFile, MissingExtra, UserError
from gcdformer.evaluation.predictor import Predictor
from gcdformer.evaluation.prior import decision_prior
from gcdformer.evaluation.table import UNREADABLE
from gcdformer.models import build_model
from gcdformer.runs.card import model_card
from gcdformer.runs.checkpoint import check_weights, load_checkpoint, load_weights
from gcdformer.runs.files import writing
from gcdformer.runs.run import Run
from gcdformer.tasks.trust import require_trusted
from gcdformer.version import __version__

CONFIG, WEIGHTS, CARD, TABLES, GRAPH = "config.json", "model.safetensors", "README.md", "predictions.parquet", "model.onnx"
SECTIONS = ("task", "data", "model", "training", "evaluation")
MODEL_TYPE = "gcdformer"
LARGEST_CONFIG = 10_000_000


def export_run(run: Run, to: Path, checkpoint: str = "last", *, parquet: bool = False, onnx: bool = False) -> list[str]:
    """Write the folder; the names of its files."""
    if to.exists() and (not to.is_dir() or any(to.iterdir())):
        raise UserError(f"to: {to} is there already; name a new or an empty folder")
    step = run.checkpoint_step(checkpoint)
    predictor = run.predictor(checkpoint)
    files = {CONFIG: json.dumps(described(run.config, run.problem, step), indent=1).encode() + b"\n",
             WEIGHTS: save(load_checkpoint(run.path, step).evaluated, {"format": "pt"}),
             CARD: model_card(run, checkpoint, step, onnx=onnx).encode()}
    if onnx:
        from gcdformer.runs.to_onnx import to_onnx
        files[GRAPH] = to_onnx(predictor)
    with writing(to):
        to.mkdir(parents=True, exist_ok=True)
        for name, data in files.items():
            (to / name).write_bytes(data)
    if parquet:
        write_tables(run, to / TABLES)
    return [*files, *([TABLES] if parquet else [])]


def described(config: Config, problem: Problem, step: int) -> dict[str, Any]:
    """What config.json holds."""
    tree = {name: getattr(config, name).model_dump() for name in SECTIONS}
    for section, field in (("data", "train_file"), ("evaluation", "test_file")):
        name = tree[section][field]
        tree[section][field] = Path(name).name if name is not None and config.task.task == FILE_TASK else None
    if config.data.weights_file is not None:
        tree["data"]["weights_file"] = Path(config.data.weights_file).name
    tree["training"]["init_from"] = None
    vocabulary = problem.vocabulary
    return {"model_type": MODEL_TYPE, "architectures": [config.model.family], "torch_dtype": "float32",
            "gcdformer_version": __version__, "step": step, "longest_input": problem.longest_input,
            "longest_output": problem.longest_target, "vocab_size": vocabulary.size, "gcdformer": tree,
            "vocabulary": [vocabulary.word(token) for token in range(vocabulary.size)]}


def load_exported(path: str | Path, *, device: str = "cpu", beam: int = 1, prior: str | float | None = None) -> Predictor:
    """The model of an exported folder, to be asked in integers: `load_exported(DIR).predict(a, b)`. Answers are decided
    under `prior`, or what the run's `evaluation.prior` says if none is given."""
    folder = Path(path)
    config, step = read_config(folder / CONFIG)
    problem = Problem.of(config)
    try:
        weights = load((folder / WEIGHTS).read_bytes())
    except Exception as error:  # whatever a damaged file makes the reader say
        raise DamagedFile(f"{folder / WEIGHTS}: not weights: {type(error).__name__}: {str(error)[:100]}") from None
    check_weights(config, problem, weights, folder / WEIGHTS)
    model = build_model(config, problem)
    load_weights(model, weights)
    place = torch.device(device)
    chosen = config.evaluation.prior if prior is None else prior
    return Predictor(model.to(place).eval(), problem, place, beam, config.training.precision,
                     prior=decision_prior(config, problem, chosen, step))


def read_config(path: Path) -> tuple[Config, int]:
    """The configuration of an exported model, and the step of its weights."""
    try:
        with path.open("rb") as file:
            data = file.read(LARGEST_CONFIG + 1)
    except OSError as error:
        raise UserError(f"{path}: cannot be read: {error.strerror or error}") from None
    try:
        found = json.loads(data) if len(data) <= LARGEST_CONFIG else None
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict) or found.get("model_type") != MODEL_TYPE or not isinstance(found.get("gcdformer"), dict):
        raise DamagedFile(f"{path}: not the configuration of an exported gcdformer model")
    try:
        config = Config.parse(found["gcdformer"])
    except UserError as error:
        raise DamagedFile(f"{path}: {error}") from None
    require_trusted(config.task.task, path)
    step = found.get("step")
    return config, step if isinstance(step, int) else 0


def write_tables(run: Run, path: Path) -> None:
    """The prediction tables of every epoch: a row for each (epoch, set, gcd, prediction); unreadable ones are null."""
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise MissingExtra("pyarrow", "query") from None
    integer = pyarrow.int64()
    schema = pyarrow.schema([("epoch", integer), ("set", pyarrow.string()), ("gcd", integer), ("prediction", integer),
                             ("count", integer)])
    with writing(path), pyarrow.parquet.ParquetWriter(path, schema) as writer:
        for line in run.metrics:
            for name, table in run.prediction_tables(line["epoch"]).items():
                rows = len(table.gcd)
                writer.write_table(pyarrow.table({
                    "epoch": [line["epoch"]] * rows, "set": [name] * rows, "gcd": table.gcd, "count": table.count,
                    "prediction": pyarrow.array(table.prediction, integer, mask=table.prediction == UNREADABLE),
                }, schema=schema))
