"""A run's model as a Hugging Face style folder: config.json, model.safetensors, a card, an ONNX graph; and the folder as a
model again.

The folder says all that is needed to ask the model: its configuration, its vocabulary, its weights bit for bit. Paths of the
machine it was trained on are left out. Loading executes nothing.
"""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import cast

import numpy as np
import torch
from safetensors.torch import load, save
from torch import Tensor

from gcdformer.config import FILE_TASK, Config
from gcdformer.data import Problem
from gcdformer.display.words import describe_config, describe_task, rule_mark, rule_words
from gcdformer.errors import DamagedFile, MissingExtra, UserError
from gcdformer.evaluation.predictor import Predictor
from gcdformer.evaluation.prior import decision_prior
from gcdformer.evaluation.table import UNREADABLE
from gcdformer.explanation import Explanation
from gcdformer.models.hooks import Logits
from gcdformer.models.transformer import Transformer
from gcdformer.numbers.encoding import PAD
from gcdformer.runs.checkpoint import load_checkpoint, load_model
from gcdformer.runs.explain import explain_run
from gcdformer.runs.files import writing
from gcdformer.runs.run import Run
from gcdformer.tasks.registry import require_trusted
from gcdformer.version import __version__

CONFIG, WEIGHTS, CARD, TABLES, GRAPH = "config.json", "model.safetensors", "README.md", "predictions.parquet", "model.onnx"
SECTIONS = ("task", "data", "model", "training", "evaluation")
MODEL_TYPE = "gcdformer"
LARGEST_CONFIG = 10_000_000
TOLERANCE = 1e-4
SHAPES = ((3, 4), (1, 1), (2, 2))
"""Rows and output tokens with which the graph is tried, beside those it was traced with."""
LOADING = """## How to load it

```python
import gcdformer

model = gcdformer.load_exported("PATH/TO/THIS/FOLDER")
model.predict(a, b)          # arrays of integers in, an array of predictions out
```

`pip install gcdformer`. Nothing in this folder is executed: the weights are safetensors, the rest is JSON and text."""
QUESTIONS = "\n\nOther numbers of operands or answers: `model.answers(questions)`, one row per question."
ONNX = """

`model.onnx` takes `inputs` (rows of tokens, padded with 0) and `outputs` (the tokens so far, the first of them 1) and gives
`logits` for the token after each; the names of the tokens are `vocabulary` in config.json, 2 ends an answer."""

HOLDS = {"yes": "yes", "wait": "yes, but for k being learned", "no": "no", "none": "not judged"}


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
        files[GRAPH] = to_onnx(predictor)
    with writing(to):
        to.mkdir(parents=True, exist_ok=True)
        for name, data in files.items():
            (to / name).write_bytes(data)
    if parquet:
        write_tables(run, to / TABLES)
    return [*files, *([TABLES] if parquet else [])]


def described(config: Config, problem: Problem, step: int) -> dict[str, object]:
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
            "vocabulary": [vocabulary.symbol(token) for token in range(vocabulary.size)]}


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
    model = load_model(config, problem, weights, folder / WEIGHTS)
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
        tree = json.loads(data) if len(data) <= LARGEST_CONFIG else None
    except (ValueError, RecursionError):
        tree = None
    if not isinstance(tree, dict) or tree.get("model_type") != MODEL_TYPE or not isinstance(tree.get("gcdformer"), dict):
        raise DamagedFile(f"{path}: not the configuration of an exported gcdformer model")
    try:
        config = Config.parse(tree["gcdformer"])
    except UserError as error:
        raise DamagedFile(f"{path}: {error}") from None
    require_trusted(config.task.task, path)
    step = tree.get("step")
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


def model_card(run: Run, checkpoint: str, step: int, *, onnx: bool) -> str:
    """The card of a run's checkpoint."""
    config, file = run.config, run.config.data.train_file
    if file is not None:
        config = config.replace(train_file=Path(file).name)
    head = ["---", "library_name: gcdformer", "tags:", "- arithmetic", "- interpretability", "- seq2seq", "---", "",
            f"# {describe_task(config)}", "",
            f"{describe_config(config)}. Exported by gcdformer {__version__}: the weights after {step:,} steps of "
            f"batches of {config.training.batch_size}.", ""]
    if not run.metrics:
        scores = ["It was not evaluated."]
    elif run.problem.task.has_gcd:
        scores = explained(explain_run(run, checkpoint), run.epoch(checkpoint))
    else:
        epoch = run.epoch(checkpoint)
        line = next(line for line in run.metrics if line["epoch"] == epoch)
        scores = ["## Scores", "", f"Accuracy {line['accuracy']:.2f} % at epoch {line['epoch']}."]
    return "\n".join([*head, *scores, "", LOADING]) + QUESTIONS + (ONNX if onnx else "") + "\n"


def explained(explanation: Explanation, epoch: int) -> list[str]:
    """D, the rules and the scores, of the evaluation of this epoch."""
    lines = ["## What it knows", "", f"D, the GCD it predicts right: {', '.join(map(str, explanation.correct)) or 'none'} "
             f"({len(explanation.correct)} of the {len(explanation.shares)} tested), at epoch {epoch}.", "",
             f"Form {explanation.form}: {explanation.form.title}; {explanation.why}.", "",
             f"{explanation.verdict[:1].upper()}{explanation.verdict[1:]}.", "",
             "| rule | holds | share of k | exceptions |", "|---|---|---|---|"]
    lines += [f"| {words} | {HOLDS[rule_mark(rule)]} | {rule.share:.2f} | {len(rule.exceptions)} |"
              for words, rule in rule_words(explanation)]
    lines += ["", "## Scores", "", f"Accuracy {explanation.measured_accuracy:.2f} % measured, "
              f"{explanation.predicted_accuracy:.2f} % if the rules were followed exactly."]
    return lines + [f"Fidelity to the rules on {name} pairs: {100 * fidelity.value:.2f} % of {fidelity.n:,}."
                    for name, fidelity in explanation.fidelity.items()]


def to_onnx(predictor: Predictor) -> bytes:
    """A transformer as an ONNX graph, tried with onnxruntime before it is handed out: a file's bytes.

    The graph is the forward pass under teacher forcing: input tokens and the output tokens so far to logits. Greedy decoding
    is a loop around it. Recurrent models are not exported: they read packed rows, which ONNX does not know.
    A `UserError` if it cannot be made, or does not compute what the model does.
    """
    if not isinstance(predictor.model, Transformer):
        raise UserError("onnx: for family 'transformer'; recurrent models are not exported")
    try:
        import onnx  # noqa: F401
        import onnxruntime
    except ImportError as error:
        raise MissingExtra(str(error.name), "onnx") from None
    module = Logits(predictor.model).eval()
    names = ["inputs", "outputs"]
    axes = {"inputs": {0: "rows", 1: "input"}, "outputs": {0: "rows", 1: "output"}, "logits": {0: "rows", 1: "output"}}
    with warnings.catch_warnings(), torch.no_grad(), TemporaryDirectory() as work:
        warnings.simplefilter("ignore")  # the exporter's own; what matters is tried below
        place = Path(work) / "model.onnx"
        torch.onnx.export(module, example_tokens(predictor, 4, 3), place, input_names=names, output_names=["logits"],
                          dynamic_axes=axes, dynamo=False)
        graph = place.read_bytes()
    session = onnxruntime.InferenceSession(graph, providers=["CPUExecutionProvider"])
    for rows, length in SHAPES:
        tokens = example_tokens(predictor, rows, min(length, predictor.problem.longest_target))
        logits = session.run(None, dict(zip(names, (part.numpy() for part in tokens), strict=True)))[0]
        with torch.no_grad():
            wanted = cast(Tensor, module(*tokens)).numpy()
        if logits.shape != wanted.shape or float(np.abs(logits - wanted).max()) > TOLERANCE:
            raise UserError("onnx: onnxruntime does not compute what the model does; the graph is not written")
    return graph


def example_tokens(predictor: Predictor, rows: int, length: int) -> tuple[Tensor, Tensor]:
    """Some input rows, all but one padded if there are several, and some output tokens."""
    problem = predictor.problem
    rng = np.random.default_rng(rows)
    vocabulary = problem.vocabulary.size
    inputs = rng.integers(3, vocabulary, (rows, problem.longest_input))
    inputs[1:, -1] = PAD
    return torch.from_numpy(inputs), torch.from_numpy(rng.integers(1, vocabulary, (rows, length)))
