"""The lab's API on real run folders: what it says of runs, epochs and answers."""

from __future__ import annotations

import json
import queue
import random
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from math import gcd
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter

from conftest import tiny_config
from gcdformer import Run, load_run, train
from gcdformer.lab import ask, bands, decided, paper, places, schema, server, weights
from gcdformer.lab.cache import Once
from gcdformer.lab.catalogue import Catalogue
from gcdformer.lab.summaries import Summaries, sample_lines
from gcdformer.lab.views import epoch_view
from gcdformer.runs.folder import RunFolder
from gcdformer.runs.metrics import to_text
from lab_process import Lab, make_runs
from test_report import long_run


@pytest.fixture(scope="module")
def root(trained: Run, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_runs(tmp_path_factory.mktemp("lab-runs"), trained)


@pytest.fixture(scope="module")
def lab(root: Path) -> Iterator[Lab]:
    with Lab(root) as lab:
        yield lab


def test_runs_are_listed_with_what_they_are(lab: Lab) -> None:
    found = {run["id"]: run for run in lab.get("/api/runs")["runs"]}
    assert set(found) == {"tiny", "sweep~gru", "comparison", "long", "damaged"}
    tiny = found["tiny"]
    assert (tiny["base"], tiny["operands"], tiny["outcomes"], tiny["epochs"]) == (10, "uniform", "natural", 3)
    assert tiny["damaged"] is None and not tiny["live"] and [epoch for epoch, _ in tiny["curve"]] == [1, 2, 3]
    assert "config.toml" in found["damaged"]["damaged"] and found["sweep~gru"]["family"] == "gru"
    assert len(found["long"]["curve"]) < 60 and found["long"]["curve"][-1][0] == 60


def test_a_run_from_a_file_names_it(tmp_path: Path) -> None:
    path = tmp_path / "pairs.csv"
    path.write_text("a,b,gcd\n" + "".join(f"{n},{2 * n},{n}\n" for n in range(1, 301)))
    train(tiny_config(train_file=str(path), max_epochs=1), tmp_path / "runs" / "filed")
    train(tiny_config(task="comparison", max_epochs=1), tmp_path / "runs" / "comparison")
    found = {run["id"]: run for run in Summaries(Catalogue(tmp_path / "runs")).all()}
    assert found["filed"]["examples_from"] == f"from {path}"
    assert (found["filed"]["operands"], found["filed"]["outcomes"]) == (None, None)
    assert found["comparison"]["examples_from"] == "uniform operands" and found["comparison"]["outcomes"] is None


def test_a_run_and_its_epochs(lab: Lab, trained: Run) -> None:
    run = lab.get("/api/runs/tiny")
    lines = trained.metrics
    assert run["columns"]["accuracy"] == [line["accuracy"] for line in lines] and run["D"] == [line["D"] for line in lines]
    assert run["checkpoints"] and set(run["checkpoints"]) <= {1, 2, 3} and run["base_primes"] == [2, 5]
    for number in (1, 3):
        epoch = lab.get(f"/api/runs/tiny/epochs/{number}")
        scores = trained.scores(number)
        assert epoch["D"] == scores.correct
        assert {one["k"]: one["prediction"] for one in epoch["f"]} == {k: s.prediction for k, s in scores.by_gcd.items()}
        for k in (1, 7, 50):
            assert abs(sum(share for cell, _, share in epoch["cells"] if cell == k) - 1) < 0.01
            assert gcd(*epoch["examples"][str(k)]) == k
    assert lab.get("/api/runs/comparison")["has_gcd"] is False


def test_unchanged_answers_are_not_sent_again(lab: Lab) -> None:
    for target in ("/api/runs", "/api/runs/tiny", "/api/runs/tiny/epochs/2"):
        _, _, headers = lab.request(target)
        status, body, _ = lab.request(target, headers={"If-None-Match": headers["etag"]})
        assert status == 304 and not body


OWN_TASK = """
import numpy as np
from gcdformer import Task

class Divisor(Task):
    name, inputs, has_gcd = "divisor", 2, True

    def draw(self, rng, count, operands, pairs, maximum):
        return np.stack(pairs.draw(rng, count), axis=1)

    def answer(self, questions):
        return np.gcd(questions[:, 0], questions[:, 1])[:, None]

    def largest_input(self, maximum):
        return maximum

    def largest_output(self, maximum):
        return maximum
"""


def test_a_task_of_ones_own_that_has_a_gcd_has_its_page(tmp_path: Path) -> None:
    """The run's files say that it has one; its code is not run to show it."""
    task = tmp_path / "own.py"
    task.write_text(OWN_TASK)
    run = train(tiny_config(task=f"{task}:Divisor", max_epochs=1), tmp_path / "runs" / "own")
    with Lab(tmp_path / "runs") as lab:
        shown = lab.get("/api/runs/own")
        assert shown["has_gcd"] and shown["D"] == [run.metrics[0]["D"]] and shown["outcomes"] == "natural"
        assert len(lab.get("/api/runs/own/epochs/1")["f"]) == 100
        assert lab.get("/api/runs/own/ask?a=12&b=18")["truth"] == 6
    task.unlink()
    catalogue = Catalogue(tmp_path / "runs")
    assert Summaries(catalogue).all()[0]["outcomes"] == "natural"
    assert epoch_view(catalogue, catalogue.find("own"), 1)["D"] == run.metrics[0]["D"]


@pytest.mark.parametrize("name", ["tiny", "sweep~gru"])
def test_asking_agrees_with_predict(lab: Lab, root: Path, name: str) -> None:
    run = load_run(root / name.replace("~", "/"))
    rng = random.Random(name)
    pairs = [(rng.randint(1, 1000), rng.randint(1, 1000)) for _ in range(12)]
    predictions = run.predict([a for a, _ in pairs], [b for _, b in pairs]).tolist()
    for (a, b), prediction in zip(pairs, predictions, strict=True):
        found = lab.get(f"/api/runs/{name}/ask?a={a}&b={b}")
        assert found["prediction"] == (prediction if prediction >= 0 else None) and found["truth"] == gcd(a, b)
        assert found["input"] == ["+", *str(a), "+", *str(b)] and found["reason"]
        assert [step["chosen"] for step in found["steps"]] == found["output"]
        assert all(step["likely"][0]["word"] == step["chosen"] for step in found["steps"])
        assert (found["attention"] is None) == (name != "tiny")


def test_any_checkpoint_can_be_asked(lab: Lab, trained: Run) -> None:
    for epoch in lab.get("/api/runs/tiny")["checkpoints"]:
        found = lab.get(f"/api/runs/tiny/ask?a=100&b=60&epoch={epoch}")
        expected = int(trained.predictor(epoch).predict(np.array([100]), np.array([60]))[0])
        assert found["epoch"] == epoch and found["prediction"] == (expected if expected >= 0 else None)
    assert "weights" in lab.get("/api/runs/long/ask?a=1&b=1", 400)["error"]
    assert "only models of task 'gcd'" in lab.get("/api/runs/comparison/ask?a=1&b=1", 400)["error"]


def test_bad_questions_are_refused(lab: Lab) -> None:
    for query in (
        "a=0&b=1",
        "a=1",
        "a=x&b=1",
        "a=1.5&b=2",
        "a=1&b=99999999999999999999999",
        "a=1001&b=5",
        "a=-3&b=5",
        "a=1&b=1&epoch=0",
        "a=1&b=1&epoch=77",
    ):
        error = lab.get(f"/api/runs/tiny/ask?{query}", 400)["error"]
        assert "\n" not in error and len(error) < 200
    lab.get("/api/runs/tiny/epochs/4", 400)
    lab.get("/api/runs/tiny/epochs/0", 400)
    lab.get("/api/runs/nothing", 404)


def test_long_metrics_are_sampled_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A summary checks a bounded number of lines, whatever the run's length."""
    import gcdformer.lab.summaries as summaries

    checked = []
    real = summaries.from_text
    monkeypatch.setattr(summaries, "from_text", lambda text, where: checked.append(1) or real(text, where))
    for epochs in (100, 200):
        run = long_run(tmp_path / str(epochs), epochs)
        checked.clear()
        lines = sample_lines(run.folder.metrics_path)
        assert len(checked) <= 17 and lines[0]["epoch"] == 1 and lines[-1]["epoch"] == epochs
        epochs_seen = [line["epoch"] for line in lines]
        assert max(np.diff(epochs_seen)) < epochs / 8
    found = Summaries(Catalogue(tmp_path))
    found.all()
    checked.clear()
    found.all()
    assert not checked


def test_a_line_being_written_is_left_out(tmp_path: Path) -> None:
    run = long_run(tmp_path / "run", 50)
    with run.folder.metrics_path.open("a") as file:
        file.write('{"epoch": 51, "st')
    assert sample_lines(run.folder.metrics_path)[-1]["epoch"] == 50


@given(lengths=st.lists(st.integers(0, 6000), min_size=1, max_size=40), cut=st.integers(0, 200))
def test_any_whole_metrics_are_sampled(lengths: list[int], cut: int, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Lines of any length, the last one maybe being written: nothing of it is damaged, and the last whole one is there."""
    path = tmp_path_factory.mktemp("metrics") / "metrics.jsonl"
    rows = [to_text({"epoch": epoch, "D": "x" * length}) for epoch, length in enumerate(lengths, 1)]
    path.write_text("".join(rows) + rows[0][:min(cut, len(rows[0]) - 1)])
    epochs = [line["epoch"] for line in sample_lines(path)]
    assert epochs == sorted(epochs) and epochs[-1] == len(rows)


def test_a_run_in_training_is_live(tmp_path: Path, trained: Run) -> None:
    shutil.copytree(trained.path, tmp_path / "run")
    listed = Summaries(Catalogue(tmp_path))
    assert [one["live"] for one in listed.all()] == [False]
    with RunFolder(tmp_path / "run").locked():
        assert [one["live"] for one in listed.all()] == [True]
    assert [one["live"] for one in listed.all()] == [False]


def test_the_api_describes_itself(lab: Lab) -> None:
    found = lab.get("/api/openapi.json")
    assert {
        "/api/runs",
        "/api/runs/{run}",
        "/api/runs/{run}/epochs/{epoch}",
        "/api/runs/{run}/ask",
        "/api/trainings",
    } <= set(found["paths"])
    assert all(operation.get("summary") for path in found["paths"].values() for operation in path.values())


ANSWERS = {
    "/api/about": schema.About,
    "/api/runs": schema.Runs,
    "/api/runs/tiny": schema.RunDetails,
    "/api/runs/comparison": schema.RunDetails,
    "/api/runs/long": schema.RunDetails,
    "/api/runs/example/epochs/1": schema.EpochDetails,
    "/api/runs/example/epochs/20": schema.EpochDetails,
    "/api/runs/tiny/epochs/3": schema.EpochDetails,
    "/api/runs/example/ask?a=160&b=120": ask.Asked,
    "/api/runs/sweep~gru/ask?a=16&b=12": ask.Asked,
    "/api/runs/example/ask?a=160&b=120&prior=natural&share=0.5": ask.Asked,
    "/api/runs/example/model": weights.ModelView,
    "/api/runs/sweep~gru/model?epoch=1": weights.ModelView,
    "/api/runs/example/surprise": ask.Surprise,
    "/api/runs/example/decided?epoch=20&prior=training": decided.DecidedView,
    "/api/runs/tiny/bands?epoch=3": bands.BandsView,
    "/api/runs/example-grokking/mechanism": places.MechanismView,
    "/api/runs/example-grokking/flip?p=3&a=1398&b=2604": places.Flipped,
    "/api/paper": paper.Paper,
    "/api/paper/tables/table-20": paper.PaperTable,
    "/api/paper/tables/figure-1": paper.PaperTable,
    "/api/paper/claims/mixture": paper.PaperClaim,
    "/api/paper/runs/base-30_seed-0_fast-4-10epochs": paper.LedgerRun,
    "/api/paper/runs/addition_base-10_max-100000_seed-0_fast-4-3epochs": paper.LedgerRun,
}


@pytest.mark.parametrize("target", ANSWERS)
def test_answers_are_as_described(lab: Lab, target: str) -> None:
    """Every field is described, every described field is there, with its type; the description names that schema."""
    body = lab.request(target)[1]
    described = TypeAdapter(ANSWERS[target])
    assert json.loads(described.dump_json(described.validate_json(body, strict=True))) == json.loads(body)


def test_every_endpoint_has_a_schema_for_answers_and_refusals(lab: Lab) -> None:
    found = lab.get("/api/openapi.json")
    named = set()
    for path, operations in found["paths"].items():
        for operation in operations.values():
            for code, response in operation["responses"].items():
                if path.endswith("/weights") and code == "200":
                    assert list(response["content"]) == ["application/octet-stream"]
                    continue
                schema = response["content"]["application/json"]["schema"]["$ref"].rpartition("/")[2]
                assert (schema == "Problem") == (int(code) >= 400), (path, code, schema)
                assert found["components"]["schemas"][schema]["properties"]
                named.add(schema)
    assert {one.__name__ for one in ANSWERS.values()} | {"StartedTraining", "TrainingList"} <= named


def test_refusals_are_as_described(lab: Lab) -> None:
    for target, status in (
        ("/api/runs/nothing", 404),
        ("/api/paper/runs/nothing", 404),
        ("/api/paper/tables/table-99", 400),
        ("/api/paper/claims/nothing", 400),
        ("/api/runs/damaged", 422),
        ("/api/runs/tiny/ask?a=0&b=1", 400),
        ("/api/trainings", 403),
    ):
        code, body, _ = lab.request(target)
        found = TypeAdapter(schema.Problem).validate_json(body, strict=True)
        assert code == status and found.get("damaged", False) == (status == 422)


def test_the_run_seen_last_is_made_ready(monkeypatch: pytest.MonkeyPatch) -> None:
    ready: list[str] = []
    monkeypatch.setattr(server, "WARM_UP_AFTER", 3600)
    warm_up = server.WarmUp(ready.append)
    try:
        warm_up.after_view("long")
        warm_up.after_view("tiny")
        assert ready == []
        warm_up.begin()
        assert ready == ["tiny"]
    finally:
        warm_up.cancel()


def test_the_first_view_makes_a_model_and_the_paper_ready_once(
    trained: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Other labs of these tests may be at it too: only models of this one are counted."""
    for name in ("one", "other"):
        shutil.copytree(trained.path, tmp_path / name)
    models: queue.Queue[str] = queue.Queue()
    papers: list[str] = []

    def warm_up(self: server.Asker, run: str) -> None:
        if self.catalogue.root == tmp_path:
            models.put(run)

    monkeypatch.setattr(server.Asker, "warm_up", warm_up)
    monkeypatch.setattr(server, "PAGE", Once(lambda: papers.append("made")))
    monkeypatch.setattr(server, "WARM_UP_AFTER", 0)
    with Lab(tmp_path) as lab:
        lab.get("/api/about")
        lab.get("/api/runs/one")
        assert models.get(timeout=100) == "one"
        lab.get("/api/runs/other")
    for thread in threading.enumerate():
        if isinstance(thread, threading.Timer):
            thread.join(100)
    assert models.empty() and papers == ["made"]


def test_questions_to_one_model_at_a_time_do_not_mix() -> None:
    """Attention is read by hooks on the model that all threads share."""
    asker = ask.Asker(Catalogue(Path("nowhere")))
    entry = asker.catalogue.find("example")
    pairs = [(160, 120), (7, 9), (999_999, 3), (1, 1)]
    alone = [asker.ask(entry, a, b, None) for a, b in pairs]
    with ThreadPoolExecutor(4) as threads:
        together = list(threads.map(lambda pair: asker.ask(entry, *pair, None), pairs * 15))
    assert together == alone * 15


FIRST_QUESTION = """
import sys
from pathlib import Path
from gcdformer.lab.ask import Asker
from gcdformer.lab.catalogue import Catalogue
asker = Asker(Catalogue(Path("nowhere")))
asker.warm_up("nothing")
asker.warm_up("example")
before = set(sys.modules)
asker.ask(asker.catalogue.find("example"), 160, 120, None)
print(sorted(set(sys.modules) - before), "sympy" in sys.modules)
"""


@pytest.mark.processes
def test_the_first_question_imports_nothing(tmp_path: Path) -> None:
    """Nor did loading the model import what torch needs to fill weights that have no memory."""
    result = subprocess.run(
        [sys.executable, "-c", FIRST_QUESTION], capture_output=True, text=True, cwd=tmp_path, check=False
    )
    assert result.stdout.strip() == "[] False", result.stdout + result.stderr
