"""The model in the browser answers a question as the lab's server does."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from browser_models import STATIC, Checks, questions
from gcdformer import Run
from lab_browser import Tab, needs_browser, open_browser, open_tab  # noqa: F401 - fixtures
from lab_process import Lab

pytestmark = [needs_browser, pytest.mark.processes]


def numbers(tree: Any) -> list[float]:
    """All numbers of nested lists, in order."""
    return [tree] if isinstance(tree, float | int) else [number for part in tree for number in numbers(part)]


def test_a_question_is_answered_as_by_the_server(tmp_path: Path, tab: Tab) -> None:
    shutil.copytree(STATIC.parent / "example", tmp_path / "example")
    run = Run(tmp_path / "example")
    (weights,) = run.path.glob("checkpoints/*/model.safetensors")
    checks = Checks(tab, {"example.safetensors": weights.read_bytes(),
                          "example.json": run.config.model_dump_json().encode()})
    checks.open()
    pairs = [(160, 120), *questions(run.problem, 12).tolist()]
    found = checks.run("asked", "example", pairs)
    several_digits = 0
    with Lab(tmp_path) as lab:
        for (a, b), mine in zip(pairs, found, strict=True):
            server = lab.get(f"/api/runs/example/ask?a={a}&b={b}")
            assert mine.pop("candidates") is None and server.pop("candidates")
            for side in ("encoder", "decoder", "cross"):
                assert numbers(mine["attention"][side]) == pytest.approx(numbers(server["attention"][side]), abs=2e-4)
            for step, expected in zip(mine.pop("steps"), server.pop("steps"), strict=True):
                assert step["chosen"] == expected["chosen"]
                assert [entry["p"] for entry in step["likely"]] == pytest.approx(
                    [entry["p"] for entry in expected["likely"]], abs=2e-5)
            del mine["attention"], server["attention"]
            names = ("run", "epoch", "rule", "reason", "own")
            assert mine == {name: value for name, value in server.items() if name not in names}
            several_digits += mine["value_of"] is not None
    assert several_digits
