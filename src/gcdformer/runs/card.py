"""The card of an exported model: what it does, what it knows, which rules it follows, how to load it. Plain Markdown."""

from __future__ import annotations

from gcdformer.display.words import rule_mark, rule_words
from gcdformer.explanation import Explanation
from gcdformer.runs.explain import explain_run
from gcdformer.runs.run import Run
from gcdformer.version import __version__

LOADING = """## How to load it

```python
import gcdformer

model = gcdformer.load_exported("PATH/TO/THIS/FOLDER")
model.predict(a, b)          # arrays of integers in, an array of predictions out
```

`pip install gcdformer`. Nothing in this folder is executed: the weights are safetensors, the rest is JSON and text."""
QUESTIONS = "\n\nOther numbers of operands or answers: `model.answers(questions)`, one row a question."
ONNX = """

`model.onnx` takes `inputs` (rows of tokens, padded with 0) and `outputs` (the tokens so far, the first of them 1) and gives
`logits` for the token after each; the words of the tokens are `vocabulary` in config.json, 2 ends an answer."""

HOLDS = {"yes": "yes", "wait": "yes, but for k being learned", "no": "no", "none": "not judged"}


def model_card(run: Run, checkpoint: str, step: int, *, onnx: bool) -> str:
    """The card of a run's checkpoint."""
    task, model, data = run.config.task, run.config.model, run.config.data
    examples = "the rows of a file" if data.train_file else f"{data.operands} operands, {data.outcomes} outcomes"
    name = task.task.rpartition(":")[2]
    head = ["---", "library_name: gcdformer", "tags:", "- arithmetic", "- interpretability", "- seq2seq", "---", "",
            f"# {name} in base {task.base}", "",
            f"A {model.family} of {model.encoder_layers}+{model.decoder_layers} layers, {model.encoder_dim} and "
            f"{model.decoder_dim} dimensions, exported by gcdformer {__version__}, for {name} of integers up to "
            f"{task.maximum:,} written in base {task.base}: {examples}. These are its weights after {step:,} steps of "
            f"batches of {run.config.training.batch_size}.", ""]
    if not run.metrics:
        scores = ["It was not evaluated."]
    elif run.problem.task.has_gcd:
        scores = explained(explain_run(run, checkpoint), run.epoch(checkpoint))
    else:
        line = next(one for one in run.metrics if one["epoch"] == run.epoch(checkpoint))
        scores = ["## Scores", "", f"Accuracy {line['accuracy']:.2f} % at epoch {line['epoch']}."]
    return "\n".join([*head, *scores, "", LOADING]) + QUESTIONS + (ONNX if onnx else "") + "\n"


def explained(found: Explanation, epoch: int) -> list[str]:
    """D, the rules and the scores, of the evaluation of this epoch."""
    lines = ["## What it knows", "", f"D, the GCD it predicts right: {', '.join(map(str, found.correct)) or 'none'} "
             f"({len(found.correct)} of the {len(found.shares)} tested), at epoch {epoch}.", "",
             f"Form {found.form}: {found.form.title}; {found.why}.", "",
             f"{found.verdict[:1].upper()}{found.verdict[1:]}.", "",
             "| rule | holds | share of k | exceptions |", "|---|---|---|---|"]
    lines += [f"| {words} | {HOLDS[rule_mark(rule)]} | {rule.share:.2f} | {len(rule.exceptions)} |"
              for words, rule in rule_words(found)]
    lines += ["", "## Scores", "", f"Accuracy {found.measured_accuracy:.2f} % measured, {found.predicted_accuracy:.2f} % "
              "if the rules were followed exactly."]
    return lines + [f"Fidelity to the rules on {name} pairs: {100 * one.value:.2f} % of {one.n:,}."
                    for name, one in found.fidelity.items()]
