"""`gcdformer predict`: ask a run's model."""

from __future__ import annotations

import argparse
import csv
import sys
from dataclasses import asdict, dataclass

import numpy as np

from gcdformer.config import LARGEST_INTEGER
from gcdformer.display.progress import progress
from gcdformer.errors import DamagedFile, UserError
from gcdformer.evaluation.table import readable as rule_answer
from gcdformer.explanation import Explanation
from gcdformer.numbers.encoding import END, Integers
from gcdformer.options import (
    add_beam,
    add_checkpoint,
    add_json,
    add_prior,
    add_quiet,
    chosen_prior,
    parse_integer,
    print_json,
    run_path,
)
from gcdformer.runs.explain import explain_run
from gcdformer.runs.run import Run


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("run_folder", type=run_path, metavar="DIR", help="run folder")
    parser.add_argument("integers", nargs="+", metavar="A B", help="the operands, one question after another; "
                        "or - to read CSV rows from standard input")
    add_checkpoint(parser)
    add_beam(parser)
    add_prior(parser)
    add_quiet(parser)
    add_json(parser)


Values = int | list[int] | None
"""One answer as a number, several as a list, none as None."""


@dataclass(frozen=True)
class Asked:
    """A question with the model's answer, the right one and the rules'."""

    question: list[int]
    input_tokens: str
    output_tokens: str
    prediction: Values
    truth: Values
    right: bool | None
    rule: int | None


def run(args: argparse.Namespace) -> int:
    run = Run(args.run_folder)
    arity, prior = run.problem.task.inputs, chosen_prior(args, run.config)
    questions = read_csv(arity) if args.integers == ["-"] else read_words(args.integers, arity)
    run.problem.check_questions(questions)
    with progress("loading the model", quiet=args.quiet):
        predictor = run.predictor(args.checkpoint, beam=args.beam, prior=prior)
    with progress("asking the model", len(questions), quiet=args.quiet) as predictor.on_batch:
        tokens = predictor.tokens(questions)
    values, readable = run.problem.decode_answers(tokens)
    truths: list[list[int] | None] = [None] * len(questions)
    if run.problem.knows_answers:
        truths = run.problem.answer(questions).tolist()
    inputs, _ = run.problem.encode_questions(questions)
    text = run.problem.vocabulary.text
    explanation = explanation_of(run, args.checkpoint) if prior == run.config.evaluation.prior else None
    rows: list[Asked] = []
    for index, (question, truth) in enumerate(zip(questions.tolist(), truths, strict=True)):
        output = [token for token in tokens[index].tolist() if token != END]
        prediction = values[index].tolist() if readable[index] else None
        rows.append(Asked(question, text(inputs[index]), text(output), simple(prediction), simple(truth),
                          None if truth is None else prediction == truth,
                          rule_answer(explanation.model.answer(truth[0])) if explanation and truth else None))
    if args.json:
        print_json([asdict(row) for row in rows])
    elif args.integers == ["-"]:
        print_csv(rows, arity)
    else:
        for row in rows:
            show(row, run.config.task.task, explanation)
    return 0


def explanation_of(run: Run, checkpoint: str) -> Explanation | None:
    """The explanation of that checkpoint's evaluation; None for other tasks, and before the first epoch."""
    if not run.problem.task.has_gcd or not run.metrics:
        return None
    try:
        return explain_run(run, checkpoint)
    except DamagedFile as error:
        print(f"gcdformer: without the rules' answer: {error}", file=sys.stderr)
        return None


def simple(values: list[int] | None) -> Values:
    return values[0] if values is not None and len(values) == 1 else values


def show(row: Asked, task: str, explanation: Explanation | None) -> None:
    name = task.rpartition(":")[2]
    prediction = "unreadable" if row.prediction is None else row.prediction
    verdict = "right" if row.right else "" if row.right is None else f"wrong: it is {row.truth}"
    print(f"{name}({', '.join(map(str, row.question))}) = {prediction}   {verdict}".rstrip())
    print(f"  tokens {row.input_tokens}  ->  {row.output_tokens}")
    if explanation is not None and row.rule is not None:
        agree = "as predicted" if row.rule == row.prediction else "not what it predicted"
        print(f"  the rules say {row.rule}, {agree}: the answer for the largest known divisor of both")


def print_csv(rows: list[Asked], arity: int) -> None:
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow([chr(ord("a") + i) for i in range(arity)] + ["prediction", "truth", "rule"])
    for row in rows:
        answers = [row.prediction, row.truth, row.rule]
        cells = [" ".join(map(str, x)) if isinstance(x, list) else "" if x is None else x for x in answers]
        writer.writerow([*row.question, *cells])


def read_words(words: list[str], arity: int) -> Integers:
    if len(words) % arity:
        raise UserError(f"integers: this task takes {arity} at a time, got {len(words)}")
    values = [parse_integer(word, "integers", -LARGEST_INTEGER, LARGEST_INTEGER) for word in words]
    return np.array(values, dtype=np.int64).reshape(-1, arity)


def read_csv(arity: int) -> Integers:
    """Rows of `arity` integers from standard input; a first row that is no number is taken for a header."""
    rows: list[list[int]] = []
    try:
        for number, cells in enumerate(csv.reader(sys.stdin), 1):
            if not cells or (number == 1 and not any(cell.strip().lstrip("+-").isdigit() for cell in cells)):
                continue
            if len(cells) != arity:
                raise UserError(f"standard input line {number}: {arity} integers, got {len(cells)} cells")
            rows.append([parse_integer(cell.strip(), f"standard input line {number}", -LARGEST_INTEGER, LARGEST_INTEGER)
                         for cell in cells])
    except (csv.Error, UnicodeDecodeError) as error:
        raise UserError(f"standard input: not CSV text: {error}") from None
    if not rows:
        raise UserError("standard input: no rows; each is the operands, separated by commas")
    return np.array(rows, dtype=np.int64)
