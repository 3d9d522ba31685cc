"""`seen` for a run that started from another's weights: it asks the parent up to that step, or says why not."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from conftest import tiny_config
from gcdformer import Run, train
from gcdformer.cli import main


def seen(capsys: pytest.CaptureFixture[str], run: Run, pair: list[int]) -> dict[str, Any]:
    assert main(["seen", str(run.path), *map(str, pair), "--json"]) == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def test_the_parents_are_asked_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first = train(tiny_config(max_epochs=1), tmp_path / "first")
    second = train(tiny_config(max_epochs=1, seed=1, init_from=str(first.path)), tmp_path / "second")
    third = train(tiny_config(max_epochs=1, seed=2, init_from=str(second.path)), tmp_path / "third")
    train(tiny_config(max_epochs=2), first.path)  # what it learns later is not in the second's weights
    train(tiny_config(max_epochs=2, seed=1, init_from=str(first.path)), second.path)  # it still knows that step
    early, late = (Run(first.path).stream.examples(n, n + 1)[0].tolist() for n in (100, 500))
    assert seen(capsys, Run(first.path), early)["parents"] == []
    for run, generations in ((Run(second.path), 1), (third, 2)):
        found = seen(capsys, run, early)
        assert [parent["examples"] for parent in found["parents"]] == [320] * generations
        assert 100 in [place["example"] for place in found["parents"][-1]["when"]] and found["unknown"] is None
        places = seen(capsys, run, late)["parents"][-1]["when"]
        assert 500 not in [place["example"] for place in places]
    assert main(["seen", str(third.path), *map(str, early)]) == 0
    text = capsys.readouterr().out
    assert text.count("its first weights are from ") == 2 and "example 100, step 6, epoch 1" in text
    shutil.rmtree(second.path)
    parent, = seen(capsys, third, early)["parents"]
    assert parent["seen"] is None and "that run cannot be asked" in parent["unknown"]
