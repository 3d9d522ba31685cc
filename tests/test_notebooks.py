"""The notebooks run from first cell to last, and their stored outputs are those of their code; what is shown in them is
whole, escaped and readable."""

from __future__ import annotations

import re
import runpy
import shutil
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from conftest import ROOT, tiny_config
from gcdformer import UNREADABLE, PredictionTable, Run, UserError, explain, train
from test_report import Outline

pytestmark = pytest.mark.processes

nbclient = pytest.importorskip("nbclient", reason="pip install 'gcdformer[dev]'")
nbformat = pytest.importorskip("nbformat", reason="pip install 'gcdformer[dev]'")
FOLDER = ROOT / "notebooks"
TINY = ('{"base": 6, "maximum": 100, "dim": 32, "lr": 3e-3, "optimizer": "adam", "weight_decay": 0.0, "batch_size": 64, '
        '"epoch_size": 6400, "test_size": 500, "warmup": 50, "threads": 1, "max_minutes": None, "max_epochs": 3}')
SCRIPT = SimpleNamespace(**runpy.run_path(str(ROOT / "scripts" / "notebooks.py")))
PARAMETERS = {  # of those that train: small budgets. The others run as they are stored, and must give what is stored
    "1-five-minutes-to-a-sieve": f"epochs = 3\nchanges = {TINY}",
    "3-your-own-task-distribution-or-base":
        f"changes = {TINY} | {{'max_epochs': 2, 'epoch_size': 3200}}\ndel changes['base']",
}
SAYS = {  # what a reader has to find in the outputs of each
    "1-five-minutes-to-a-sieve": ["{1, 2}<", "{1, 3}<", "correct GCD", "Predictions for 500 pairs", "learned 2",
                                  "as D says"],
    "2-explain-any-model": ["being learned: [16, 32, 48, 64, 80, 96]", "certified", "not certified: no form fits",
                            "every pair was tried", "D is all products", "% of the answers are right, least often for k = ",
                            "both up to 100,000: "],
    "3-your-own-task-distribution-or-base": ["base  6: ", "D = [1, ", "Explanation", "base 7: accuracy", "should be [0 0]"],
    "4-from-sieve-to-circuit": ["grokked: [3]", "2 is read off the last digit", "3 is a sum over the digits",
                                "residues explain ", "the same answer in 20 of 20 swaps", "both digits: "],
}


def notebook(name: str) -> Any:
    return nbformat.read(FOLDER / f"{name}.ipynb", as_version=4)


def outputs(book: Any) -> str:
    texts = []
    for cell in book.cells:
        for output in cell.get("outputs", []):
            texts.append(output.get("text", "") or output.get("data", {}).get("text/html", ""))
    return "\n".join(texts)


def test_each_notebook_is_tried_here() -> None:
    assert {path.stem for path in FOLDER.glob("*.ipynb")} == set(SAYS) > set(PARAMETERS)


def kinds(book: Any) -> list[list[str]]:
    """What kinds of outputs each cell has."""
    return [[" ".join([output.output_type, *sorted(output.get("data", {}))]) for output in cell.get("outputs", [])]
            for cell in book.cells]


def results(book: Any) -> str:
    """All that is shown, without its style; of a model's inner values what is printed: floats differ by machine."""
    printed = "\n".join(output.text for cell in book.cells for output in cell.get("outputs", []) if "text" in output)
    return printed if "nnsight" in printed else re.sub(r"<style>.*?</style>", "", outputs(book), flags=re.DOTALL)


@pytest.mark.parametrize("name", SAYS)
def test_notebook_runs(name: str, tmp_path: Path) -> None:
    """In a folder of its own, as `make notebooks` does. Stored are outputs of the same kinds, or the same outputs."""
    stored, book = notebook(name), notebook(name)
    if name in PARAMETERS:
        (cell,) = [cell for cell in book.cells if "parameters" in cell.metadata.get("tags", [])]
        cell.source = PARAMETERS[name]
    SCRIPT.run(book, tmp_path / "work")
    shown = outputs(book)
    decided = re.sub(r"(?<=\d)\?", "", shown)  # with few pairs a k of D may be undecided, and has a question mark
    missing = [words for words in SAYS[name] if words not in decided]
    assert not missing, (missing, re.sub(r"<style>.*?</style>", "", shown, flags=re.DOTALL)[-6000:])
    assert not [one for cell in book.cells for one in cell.get("outputs", []) if one.output_type == "error"]
    assert kinds(book) == kinds(stored), "make notebooks"
    if name not in PARAMETERS:
        assert results(book) == results(stored), "make notebooks"


@pytest.mark.parametrize("name", SAYS)
def test_notebook_is_stored_with_outputs(name: str) -> None:
    """Those of its code; small; without counts, times, colours of a terminal, and any path of whoever ran it."""
    book, text = notebook(name), (FOLDER / f"{name}.ipynb").read_text()
    nbformat.validate(book)
    assert book.metadata["gcdformer"]["code_sha256"] == SCRIPT.digest(book), "make notebooks"
    assert book.cells[0].source.startswith("# ") and any(kinds(book))
    assert all(cell.execution_count is None for cell in book.cells if cell.cell_type == "code")
    assert not any("execution" in cell.metadata for cell in book.cells) and "<span>minutes</span>" not in text
    assert len(text) <= SCRIPT.MOST_BYTES and "\\u001b" not in text
    assert not re.search(r"/(home|root|tmp|work|Users|usr|opt)/", text)


def strange_table() -> PredictionTable:
    """Unreadable answers, huge answers, many values for one k, large k."""
    k = np.repeat(np.arange(1, 121), 20)
    predictions = np.where(k % 2 == 0, 2, 1)
    predictions[:4] = UNREADABLE
    predictions[5:15] = np.arange(10**12, 10**12 + 10)
    return PredictionTable.of(k, k, predictions, k)


@pytest.fixture(scope="module")
def pieces(trained: Run, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """What a notebook shows, of everything that it shows in a way of its own."""
    other = train(tiny_config(task="addition", max_epochs=2), tmp_path_factory.mktemp("odd") / "<b>odd & name")
    table = strange_table()
    return {"run": trained._repr_html_(), "other task": other._repr_html_(), "table": table._repr_html_(),
            "certificate": explain(trained)._repr_html_(), "not certified": explain(table, base=10)._repr_html_()}


def test_displays(trained: Run, pieces: dict[str, str]) -> None:
    for name, text in pieces.items():
        outline = Outline(text)
        assert not outline.fetched and "<script" not in text and "http" not in text, name
        assert text.startswith('<div class="gcdformer"><style>') and text.count("<style>") == 1
        rules = re.sub(r"@media[^{]*", "", text[text.index("<style>") + 7:text.index("</style>")])
        selectors = [one for head in re.findall(r"([^{}]+)\{", rules) for one in head.split(",")]
        assert selectors and all(".gcdformer" in one for one in selectors if one.strip()), "a rule that reaches beyond ours"
    last = trained.metrics[-1]
    assert f"{last['accuracy']:.2f} %" in pieces["run"] and 'aria-label="Learning curves"' in pieces["run"]
    lines = re.findall(r'<path d="M [\d.]+ [\d.]+\s+((?:L [\d.]+ [\d.]+\s+)+)" clip-path=', pieces["run"])
    assert sum(line.count("L ") == len(trained.metrics) - 1 for line in lines) >= 2, "accuracy and correct GCD"
    assert "&lt;b&gt;odd &amp; name" in pieces["other task"] and "<b>odd" not in pieces["other task"]
    assert "unreadable (4)" in pieces["table"] and "1,000,000,000,000 (1)" in pieces["table"]
    assert "and 7 more" in pieces["table"] and "and 20 larger GCD" in pieces["table"]
    assert "not certified" in pieces["not certified"] and "f(k) is the largest element of D" in pieces["certificate"]


def test_a_run_that_cannot_be_shown_says_why(trained: Run, tmp_path: Path) -> None:
    shutil.copytree(trained.path, tmp_path / "run")
    run = Run(tmp_path / "run")
    last = run.metrics[-1]["epoch"]
    (run.path / "predictions" / f"epoch-{last:05d}.npz").write_bytes(b"damaged")
    assert "does not match its checksum" in run._repr_html_()
    (run.path / "metrics.jsonl").unlink()
    assert "No epoch has been evaluated yet" in run._repr_html_()
    assert repr(run) == f"Run({str(run.path)!r}: gcd in base 10, transformer, no epoch evaluated)"
    (run.path / "metrics.jsonl").write_text("damaged\n")
    assert repr(run) == f"Run({str(run.path)!r}: gcd in base 10, transformer, its metrics are damaged)"


def test_a_csv_is_explained_by_its_name(tmp_path: Path) -> None:
    path = tmp_path / "some.csv"
    rows = [(a, b, np.gcd(np.gcd(a, b), 10)) for a in range(1, 200) for b in range(1, 200)]
    path.write_text("a,b,prediction\n" + "".join(f"{a},{b},{p}\n" for a, b, p in rows))
    found = explain(path, base=10)
    assert found.correct == [1, 2, 5, 10] and explain(str(path), base=10).correct == found.correct
    with pytest.raises(UserError, match="base"):
        explain(path)


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    from lab_browser import CHROMIUM, sync_api  # skips without playwright
    if CHROMIUM is None:
        pytest.skip("no chromium: apt-get install chromium-headless-shell (or set CHROMIUM to a browser's path)")
    with sync_api.sync_playwright() as play:
        found = play.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield found
        found.close()


@pytest.mark.parametrize(("scheme", "theme", "dark"), [
    ("light", "", False), ("dark", "", True), ("dark", 'data-jp-theme-light="true"', False),
    ("light", 'data-jp-theme-light="false"', True), ("light", 'class="vscode-dark"', True),
    ("dark", 'class="vscode-light"', False)])
def test_displays_can_be_read_light_and_dark(browser: Any, pieces: dict[str, str], scheme: str, theme: str,
                                             dark: bool) -> None:
    """Contrast as WCAG AA asks, in the theme the notebook is in, and nothing sticks out of a narrow page."""
    page = browser.new_page(color_scheme=scheme, viewport={"width": 400, "height": 800})
    body = "".join(pieces.values())
    page.set_content(f'<!doctype html><body {theme} style="background: {"#111" if dark else "#fff"}">{body}</body>')
    grounds = page.evaluate("[...document.querySelectorAll('.gcdformer')].map(e => getComputedStyle(e).backgroundColor)")
    assert set(grounds) == {"rgb(27, 33, 41)" if dark else "rgb(255, 255, 255)"} and len(grounds) == 5
    page.evaluate("document.querySelectorAll('details').forEach(e => { e.open = true; })")
    assert page.evaluate((ROOT / "tests" / "lab_contrast.js").read_text()) == []
    assert page.evaluate("document.documentElement.scrollWidth") <= 400
    page.close()
