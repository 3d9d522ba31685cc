"""The lab's API on real run folders: what it tells of runs, epochs and answers; the export; the example."""

from __future__ import annotations

import json
import queue
import random
import shutil
import subprocess
import sys
from collections.abc import Iterator
from math import gcd
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from conftest import gcdformer
from gcdformer import Run, load_run
from gcdformer.lab import answers, server
from gcdformer.lab.catalogue import EXAMPLE, Catalogue, sample_lines
from gcdformer.lab.serve import listen
from gcdformer.runs.folder import RunFolder
from gcdformer.runs.metrics import to_text
from lab_process import Lab, make_runs
from test_report import long_run


@pytest.fixture(scope="module")
def root(trained: Run, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_runs(tmp_path_factory.mktemp("lab-runs"), trained)


@pytest.fixture(scope="module")
def lab(root: Path) -> Iterator[Lab]:
    lab = Lab(root)
    yield lab
    lab.close()


def test_runs_are_listed_with_what_they_are(lab: Lab) -> None:
    found = {run["id"]: run for run in lab.get("/api/runs")["runs"]}
    assert set(found) == {"tiny", "sweep~gru", "comparison", "long", "damaged"}
    tiny = found["tiny"]
    assert (tiny["base"], tiny["operands"], tiny["outcomes"], tiny["epochs"]) == (10, "uniform", "natural", 3)
    assert tiny["damaged"] is None and not tiny["live"] and [epoch for epoch, _ in tiny["curve"]] == [1, 2, 3]
    assert "config.toml" in found["damaged"]["damaged"] and found["sweep~gru"]["family"] == "gru"
    assert len(found["long"]["curve"]) < 60 and found["long"]["curve"][-1][0] == 60


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


def test_surprises_are_pairs_against_the_rules() -> None:
    lab = Lab(EXAMPLE.parent / "nowhere")
    try:
        assert [run["id"] for run in lab.get("/api/runs")["runs"]] == ["example"]
        for _ in range(5):
            pair = lab.get("/api/runs/example/surprise")
            found = lab.get(f"/api/runs/example/ask?a={pair['a']}&b={pair['b']}")
            assert found["prediction"] != found["rule"] and "the rules say" in found["reason"]
    finally:
        lab.close()


def test_the_example_is_small_real_and_whole() -> None:
    run = load_run(EXAMPLE)
    size = sum(path.stat().st_size for path in EXAMPLE.rglob("*") if path.is_file())
    assert size < 2_000_000 and len(run.metrics) >= 30 and run.metrics[-1]["n_correct"] >= 12
    counts = [0, *(line["n_correct"] for line in run.metrics)]
    assert max(np.diff(counts)) <= counts[-1] / 3 and len(set(counts)) >= 8, "the slider shows it grow step by step"
    for line in run.metrics:
        assert run.scores(line["epoch"]).correct == line["D"]
    pairs = run.prediction_tables()["stratified"]
    a, b = pairs.examples_of(1, 1)[0]
    assert run.predict([a], [b]).tolist() == [1]


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
    import gcdformer.lab.catalogue as catalogue

    checked = []
    real = catalogue.from_text
    monkeypatch.setattr(catalogue, "from_text", lambda text, where: checked.append(1) or real(text, where))
    for epochs in (100, 200):
        run = long_run(tmp_path / str(epochs), epochs)
        checked.clear()
        lines = sample_lines(run.folder.metrics_path)
        assert len(checked) <= 17 and lines[0]["epoch"] == 1 and lines[-1]["epoch"] == epochs
        epochs_seen = [line["epoch"] for line in lines]
        assert max(np.diff(epochs_seen)) < epochs / 8
    found = Catalogue(tmp_path)
    found.summaries()
    checked.clear()
    found.summaries()
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
    catalogue = Catalogue(tmp_path)
    assert [one["live"] for one in catalogue.summaries()] == [False]
    with RunFolder(tmp_path / "run").locked():
        assert [one["live"] for one in catalogue.summaries()] == [True]
    assert [one["live"] for one in catalogue.summaries()] == [False]


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
    "/api/about": answers.About,
    "/api/runs": answers.Runs,
    "/api/runs/tiny": answers.RunDetails,
    "/api/runs/comparison": answers.RunDetails,
    "/api/runs/long": answers.RunDetails,
    "/api/runs/example/epochs/1": answers.EpochDetails,
    "/api/runs/example/epochs/20": answers.EpochDetails,
    "/api/runs/tiny/epochs/3": answers.EpochDetails,
    "/api/runs/example/ask?a=160&b=120": answers.Asked,
    "/api/runs/sweep~gru/ask?a=16&b=12": answers.Asked,
    "/api/runs/example/surprise": answers.Surprise,
    "/api/paper": answers.Paper,
}


@pytest.mark.parametrize("target", ANSWERS)
def test_answers_are_as_described(lab: Lab, target: str) -> None:
    """Every field is described, every described field is there, with its type; the description names that schema."""
    body = lab.request(target)[1]
    found = ANSWERS[target].model_validate_json(body)
    assert json.loads(found.model_dump_json(exclude_unset=True)) == json.loads(body)


def test_every_endpoint_has_a_schema_for_answers_and_refusals(lab: Lab) -> None:
    found = lab.get("/api/openapi.json")
    named = set()
    for path, operations in found["paths"].items():
        for operation in operations.values():
            for code, response in operation["responses"].items():
                schema = response["content"]["application/json"]["schema"]["$ref"].rpartition("/")[2]
                assert (schema == "Problem") == (int(code) >= 400), (path, code, schema)
                assert found["components"]["schemas"][schema]["properties"]
                named.add(schema)
    assert {one.__name__ for one in ANSWERS.values()} | {"StartedTraining", "TrainingList"} <= named


def test_refusals_are_as_described(lab: Lab) -> None:
    for target, status in (
        ("/api/runs/nothing", 404),
        ("/api/runs/damaged", 422),
        ("/api/runs/tiny/ask?a=0&b=1", 400),
        ("/api/trainings", 403),
    ):
        code, body, _ = lab.request(target)
        found = answers.Problem.model_validate_json(body)
        assert code == status and found.damaged == (status == 422)


def test_a_run_in_view_is_made_ready_once(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ready: queue.Queue[str] = queue.Queue()
    monkeypatch.setattr(server, "WARM_UP_AFTER", 0.2)
    monkeypatch.setattr(server.Asker, "warm_up", lambda self, run: ready.put(run))
    lab = Lab(root)
    try:
        lab.get("/api/about")
        lab.get("/api/runs")
        lab.get("/api/runs/tiny")
        assert ready.get(timeout=30) == "tiny"
        lab.get("/api/runs/long")
        with pytest.raises(queue.Empty):
            ready.get(timeout=0.6)
    finally:
        lab.close()


FIRST_QUESTION = """
import sys
from pathlib import Path
from gcdformer.lab.asking import Asker
from gcdformer.lab.catalogue import Catalogue
asker = Asker(Catalogue(Path("nowhere")))
asker.warm_up("nothing")
asker.warm_up("example")
before = set(sys.modules)
asker.ask(asker.catalogue.find("example"), 160, 120, None)
print(sorted(set(sys.modules) - before), "sympy" in sys.modules)
"""


def test_the_first_question_imports_nothing(tmp_path: Path) -> None:
    """Nor did loading the model import what torch needs to fill weights that have no memory."""
    result = subprocess.run(
        [sys.executable, "-c", FIRST_QUESTION], capture_output=True, text=True, cwd=tmp_path, timeout=300, check=False
    )
    assert result.stdout.strip() == "[] False", result.stdout + result.stderr


def test_export(trained: Run, root: Path, tmp_path: Path) -> None:
    result = gcdformer("lab", trained.path, "--export", tmp_path / "site")
    assert result.returncode == 0, result.stderr
    site = tmp_path / "site"
    assert 'data-source="files"' in (site / "index.html").read_text()
    assert sorted(path.stem for path in (site / "data" / "epochs").iterdir()) == ["1", "2", "3"]
    assert json.loads((site / "data" / "run.json").read_text())["checkpoints"] == []
    again = gcdformer("lab", trained.path, "--export", site)
    assert again.returncode == 2 and "is there already" in again.stderr
    many = gcdformer("lab", root, "--export", tmp_path / "other")
    assert many.returncode == 2 and "holds 5 runs" in many.stderr


def test_a_port_that_is_taken(tmp_path: Path) -> None:
    with listen("127.0.0.1", 0) as taken:
        result = gcdformer("lab", tmp_path, "--no-open", "--port", taken.getsockname()[1])
    assert result.returncode == 2 and "--port" in result.stderr and result.stderr.count("\n") == 1
