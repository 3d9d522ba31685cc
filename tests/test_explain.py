"""`explain` for runs, CSVs and any function; timelines; checks on a live model; proofs by enumeration; the command."""

from __future__ import annotations

import io
import json
import math
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rich.console import Console

from conftest import tiny_config
from gcdformer import PredictionTable, Run, Stream, UserError, explain, train
from gcdformer.cli import main
from gcdformer.display import progress
from gcdformer.display.terminal import show_timeline
from gcdformer.evaluation.predictor import Predictor
from gcdformer.explanation.metamorphic import metamorphic_checks
from gcdformer.explanation.rules import RuleModel
from gcdformer.explanation.sieve import largest_divisor, products
from gcdformer.explanation.timeline import compare, timeline

KNOWN = sorted(products({2: 4, 5: 25}, 100))


def sieve(a: int, b: int) -> int:
    """A model that follows the rules of base 10."""
    found = largest_divisor(KNOWN, math.gcd(a, b))
    assert found is not None
    return found


def run_cli(capsys: pytest.CaptureFixture[str], *words: object) -> tuple[int, str, str]:
    code = main([str(word) for word in words])
    out, err = capsys.readouterr()
    return code, out, err


def lines_of(*known: list[int]) -> list[dict[str, object]]:
    return [{"epoch": epoch, "D": d} for epoch, d in enumerate(known, 1)]


def test_any_function_is_explained_in_one_call() -> None:
    found = explain(sieve, 10, pairs=20_000)
    assert found.certified and found.form.letter == "R" and found.correct == KNOWN
    assert found.measured_accuracy == pytest.approx(found.predicted_accuracy, abs=1.0)
    exact = explain(np.gcd, 30, pairs=20_000)
    assert len(exact.correct) == 100 and exact.form.letter == "G" and exact.grokked[:2] == [7, 11]
    assert explain(math.gcd, 30, pairs=5000).correct == exact.correct
    strange = explain(lambda a, b: None if a % 2 else float("nan"), 10, pairs=5000)
    assert strange.form.letter == "none" and not strange.correct
    with pytest.raises(UserError, match="base"):
        explain(sieve)


def test_a_table_is_explained() -> None:
    rng = np.random.default_rng(0)
    k = rng.integers(1, 101, 20_000)
    b = rng.integers(1, 50, 20_000)
    table = PredictionTable.of(k, k * b, np.array([sieve(int(x), int(x)) for x in k]))
    found = explain(table, 10)
    assert found.correct == KNOWN and set(found.fidelity) == {"pairs"} and found.maximum is None


def test_checks_draw_every_gcd() -> None:
    """A model that has memorised small pairs: the rules predict few of its answers there, whatever D is."""
    model = RuleModel(tuple(KNOWN), {d: d for d in KNOWN}, 1)
    drawn: list[np.ndarray] = []

    def by_heart(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        drawn.append(np.gcd(a, b))
        return np.where(np.maximum(a, b) <= 1000, np.gcd(a, b), model.answers_to(np.gcd(a, b)))

    checks = {c.name: c for c in metamorphic_checks(by_heart, model, 1_000_000, np.random.default_rng(0), 3000)}
    assert checks["operands up to 1,000"].rate < 0.2 and checks["operands up to 1,000,000"].rate > 0.99
    assert set(drawn[0].tolist()) == set(range(1, 101))


def test_timeline_names_the_prime_power() -> None:
    old = sorted(products({2: 4, 5: 5}, 100))
    new = sorted(products({2: 4, 3: 3, 5: 5}, 100))
    found = timeline(lines_of([1], old, old, old, old, new, sorted(set(new) - {15}), new))
    assert [step.epoch for step in found.steps] == [1, 2, 6, 7, 8]
    step = found.steps[2]
    assert step.causes == {3: [k for k in new if k not in old]}
    assert step.sentence().startswith("epoch 6: learned 3 -> 3, 6, 12, 15, 30, 60")
    assert found.steps[3].left == [15] and found.steps[4].entered == [15]
    assert found.stagnation == [(3, 5)]
    assert found.first[15] == 6 and found.settled[15] == 8
    assert found.prime_powers == {2: 2, 4: 2, 5: 2, 3: 6}
    other = timeline(lines_of([1, 2], [1, 2, 3, 6]))
    rows = [row.to_json() for row in compare({"one": found, "two": other})]
    assert rows[0] == {"prime_power": 2, "epochs": {"one": 2, "two": 1}}
    assert {"prime_power": 5, "epochs": {"one": 2, "two": None}} in rows


def test_checks_on_a_live_model() -> None:
    model = RuleModel(tuple(KNOWN), {d: d for d in KNOWN}, 1)

    def good(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        return np.array([sieve(int(x), int(y)) for x, y in zip(a, b, strict=True)])

    checks = {c.name: c for c in metamorphic_checks(good, model, 1_000_000, np.random.default_rng(0), 300)}
    assert checks["swap"].rate == checks["sum"].rate == checks["common factor, as the rules say"].rate == 1
    assert checks["operands up to 1,000"].rate == 1 and checks["common factor"].rate < 1

    def lopsided(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        return np.where((a > b) & (a < 100_000), 1, good(a, b))

    checks = {c.name: c for c in metamorphic_checks(lopsided, model, 1_000_000, np.random.default_rng(0), 2000)}
    assert checks["swap"].rate < 1 and checks["operands up to 10,000"].rate < checks["operands up to 1,000,000"].rate
    example = checks["swap"].examples[0]
    assert example.pair == example.other_pair[::-1] and example.prediction != example.other_prediction


def test_explain_a_run(trained: Run, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    code, out, _ = run_cli(capsys, "explain", trained.path, "--json")
    values = json.loads(out)
    assert code == 0 and {"D", "form", "why", "rules", "fidelity", "accuracy", "timeline"} <= set(values)
    assert values["D"] == trained.metrics[-1]["D"] and set(values["fidelity"]) == {"natural", "stratified"}
    _, out, _ = run_cli(capsys, "explain", trained.path, "--epoch", 1, "--json")
    assert json.loads(out)["D"] == trained.metrics[0]["D"]
    code, out, _ = run_cli(capsys, "explain", trained.path, "--html", tmp_path / "page.html", "--checks")
    assert code == 0 and "f(k), k = 1 …" in out and "asked in other ways" in out and "fidelity, natural" in out
    assert "What it knows" in (tmp_path / "page.html").read_text()
    code, out, _ = run_cli(capsys, "explain", trained.path, trained.path)
    assert code == 0 and "epoch at which each prime power was learned" in out
    train(tiny_config(task="comparison", max_epochs=1), tmp_path / "other")
    code, _, err = run_cli(capsys, "explain", trained.path, tmp_path / "other")
    assert code == 2 and "comparison" in err
    code, _, err = run_cli(capsys, "explain", trained.path, "--epoch", 1, "--checkpoint", 2)
    assert code == 2 and "give one" in err


def test_explain_all_pairs_of_a_run(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    train(tiny_config(maximum=60, max_epochs=1), tmp_path / "small")
    code, out, _ = run_cli(capsys, "explain", tmp_path / "small", "--exhaustive", "--json")
    values = json.loads(out)
    assert code == 0 and values["exhaustive"] and values["fidelity"]["natural"]["n"] == 3600


def test_explain_all_pairs_up_to_a_smaller_maximum(trained: Run, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run_cli(capsys, "explain", trained.path, "--exhaustive", "--max", 100, "--json")
    values = json.loads(out)
    assert code == 0 and values["exhaustive"] and values["fidelity"]["natural"]["n"] == 10_000
    every = np.arange(1, 101)
    a, b = np.repeat(every, 100), np.tile(every, 100)
    right = 100 * float((trained.predict(a, b) == np.gcd(a, b)).mean())
    assert values["accuracy"]["measured"] == pytest.approx(right)
    assert explain(trained, maximum=100, exhaustive=True).measured_accuracy == pytest.approx(right)
    for words, said in ((["--max", 100], "belongs to --exhaustive"), (["--exhaustive", "--max", 1001], "1..1000"),
                        (["--exhaustive", "--max", 0], "1..1000"), (["--exhaustive", "--max", "x"], "an integer")):
        code, out, err = run_cli(capsys, "explain", trained.path, *words)
        assert code == 2 and out == "" and said in err
    with pytest.raises(UserError, match="needs exhaustive"):
        explain(trained, maximum=100)


def test_a_csv_in_place_of_a_run_is_answered_with_the_flag(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write_csv(tmp_path / "examples.csv", "a,b,prediction\n1,2,1\n")
    code, out, err = run_cli(capsys, "explain", path)
    assert code == 2 and out == "" and f"gcdformer explain --predictions {path} --base B" in err


def test_the_history_says_what_it_leaves_out() -> None:
    def shown(count: int) -> list[str]:
        out = io.StringIO()
        grows = [list(range(1, 2 + n)) for n in range(count) for _ in range(4)]
        show_timeline(Console(file=out, width=150), timeline(lines_of(*grows)))
        return [line.strip() for line in out.getvalue().splitlines() if line.strip()]

    head, *few = shown(10)
    assert head == "how it was learned" and len([line for line in few if line.startswith("epoch ")]) == 10
    assert few[:3] == ["epoch 1: learned 1", "epochs 2 to 4: nothing new", "epoch 5: learned 2"]
    _, note, *many = shown(20)
    assert note == ("the last 15 epochs at which D changed; 5 before epoch 21 are left out here, --json and --html have all")
    assert many[0].startswith("epoch 21: ") and many[1] == "epochs 22 to 24: nothing new" and len(many) == 30


@pytest.mark.parametrize("words", [["evaluate"], ["explain", "--checks"], ["explain", "--exhaustive", "--max", "50"],
                                   ["predict", "160", "120"], ["seen", "160", "120"]], ids=lambda words: words[0])
def test_slow_work_shows_that_it_is_alive(words: list[str], trained: Run, capsys: pytest.CaptureFixture[str],
                                          monkeypatch: pytest.MonkeyPatch) -> None:
    """The model, or the stream, waits until something has been said."""
    said = threading.Event()
    monkeypatch.delenv(progress.SWITCH)
    monkeypatch.setattr(progress, "FIRST", 0.0)
    speak = progress.PlainLines.say

    def say(lines: progress.PlainLines) -> None:
        speak(lines)
        said.set()

    monkeypatch.setattr(progress.PlainLines, "say", say)
    tokens, examples = Predictor.tokens, Stream.examples

    def patient(work: Callable[..., Any]) -> Callable[..., Any]:
        def waits(*arguments: Any) -> Any:
            assert quiet or said.wait(30)
            return work(*arguments)
        return waits

    monkeypatch.setattr(Predictor, "tokens", patient(tokens))
    monkeypatch.setattr(Stream, "examples", patient(examples))
    quiet = False
    code, _, err = run_cli(capsys, words[0], trained.path, *words[1:])
    assert code == 0 and err.count(" s\n") >= 1
    quiet = True
    code, _, err = run_cli(capsys, words[0], trained.path, *words[1:], "--quiet")
    assert code == 0 and err == ""


def write_csv(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


def test_explain_a_csv(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rng = np.random.default_rng(0)
    rows = []
    for k in range(1, 12):
        for factor in rng.choice(1000, 40, replace=False) + 2:
            rows.append(f"{sieve(k, k * factor)},{k * factor},x,{k}")
    rows += [f"1,{12 * factor},x,12" for factor in range(1, 30)] + [",7,x,7"]
    rows += rows[:50] + ["9,2,x,1"] * 40  # repeated pairs count once, with their first answer
    rows.append(rows[0])
    path = write_csv(tmp_path / "p.csv", "prediction, B ,note,a\n" + "\n".join(rows) + "\n")
    code, out, _ = run_cli(capsys, "explain", "--predictions", path, "--base", 10, "--json")
    values = json.loads(out)
    assert code == 0 and values["D"] == [1, 2, 4, 5, 10] and set(values["fidelity"]) == {"pairs"}
    assert 12 in values["untested"] and values["fidelity"]["pairs"]["n"] == 471
    assert values["accuracy"]["predicted"] == pytest.approx(100 * 201 / 471)
    assert values["domain"].startswith("the 471 pairs of p.csv (90 repeated ones left out), operands up to ")
    assert any(example["prediction"] is None for example in values["counterexamples"])
    code, out, _ = run_cli(capsys, "explain", "--predictions", path, "--base", 10)
    assert code == 0 and "fewer than 30 pairs" in out


HEAD = "a,b,prediction\n"
BAD_CSV = [
    ("", "line 1"), ("a,b\n1,2\n", "prediction"), ("a,b,prediction,a\n", "exactly one column 'a'"), (HEAD, "no rows"),
    (HEAD + "1,2,1\n-1,2,1\n", "line 3"), (HEAD + "0,2,1\n", "line 2"), (HEAD + "1,2\n", "line 2"),
    (HEAD + "1.5,2,1\n", "line 2"), (HEAD + "one,2,1\n", "line 2"), (HEAD + "1,99999999999999999999,1\n", "line 2"),
    (HEAD + "\n1,9999999999999999999,2\n", "line 3"), ("a,b,prediction,answer\n", "'prediction' or 'answer'"),
]


@pytest.mark.parametrize(("text", "word"), BAD_CSV)
def test_a_bad_csv_names_the_line(text: str, word: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write_csv(tmp_path / "p.csv", text)
    code, out, err = run_cli(capsys, "explain", "--predictions", path, "--base", 10)
    assert code == 2 and out == "" and len(err.splitlines()) == 1 and word in err and "p.csv" in err


def test_bad_calls(tmp_path: Path, capsys: pytest.CaptureFixture[str], trained: Run) -> None:
    path = write_csv(tmp_path / "p.csv", "a,b,prediction\n1,2,1\n")
    binary = tmp_path / "b.csv"
    binary.write_bytes(b"a,b,prediction\n\xff\xfe,1,1\n")
    for words in (["explain"], ["explain", "--predictions", path], ["explain", trained.path, "--base", 10],
                  ["explain", "--predictions", path, "--base", 10, "--checks"], ["explain", trained.path, "--epoch", 99],
                  ["explain", "--predictions", tmp_path / "none.csv", "--base", 10], ["explain", "nowhere"],
                  ["explain", "--predictions", binary, "--base", 10], ["explain", "--predictions", path, "--base", 1]):
        code, out, err = run_cli(capsys, *words)
        assert code == 2 and out == "" and len(err.splitlines()) == 1
