"""How fast the lab is: `python benchmarks/lab.py [first-view] [ask] [slider] [throughput]`; without names, the first three.

first-view: opening the list of 200 runs of 300 epochs in a real browser, cold and warm. ask: from the pair typed to the
answer on the page. slider: from an epoch chosen to the page drawn. throughput: examples/s of a training in pairs of runs,
with the lab open on the run's page in a browser and without; needs quiet cores.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from statistics import mean, median
from typing import Any

import numpy as np
from playwright.sync_api import Page, sync_playwright

from gcdformer import PredictionTable
from gcdformer.evaluation import score
from gcdformer.explanation.sieve import largest_divisor, products
from gcdformer.lab.catalogue import EXAMPLE
from gcdformer.presets import preset
from gcdformer.runs.explain import explain_evaluation
from gcdformer.runs.folder import RunFolder
from gcdformer.training.loop import score_line

NAMES = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
CHROMIUM = os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, NAMES)), None)
TOPS = [
    {2: 2},
    {2: 4},
    {2: 4, 5: 5},
    {2: 4, 3: 3, 5: 5},
    {2: 8, 3: 9, 5: 25, 7: 7},
    {2: 32, 3: 27, 5: 25, 7: 49, 11: 11, 13: 13},
]

MOVE = """async (epoch) => {
  const slider = document.getElementById('epoch');
  const drawn = new Promise((done) => new PerformanceObserver((list, self) => {
    if (!list.getEntriesByName('redraw').length) return;
    self.disconnect();
    done();
  }).observe({ entryTypes: ['measure'] }));
  const began = performance.now();
  slider.value = epoch;
  slider.dispatchEvent(new Event('input'));
  await drawn;
  await new Promise((done) => requestAnimationFrame(() => setTimeout(done, 0)));
  return performance.now() - began;
}"""


def synthetic_run(path: Path, epochs: int, like: Path | None) -> None:
    """A run folder of many epochs; the metrics and tables of `like`, another one, are copied if given."""
    folder = RunFolder(path)
    path.mkdir(parents=True)
    config = preset("demo").replace(base=2 + len(list(path.parent.iterdir())))
    folder.write_config(config)
    if like is not None:
        shutil.copy(like / "metrics.jsonl", path)
        return
    k = np.repeat(np.arange(1, 101), 200)
    before: list[int] = []
    for epoch in range(1, epochs + 1):
        known = products(TOPS[min(epoch * len(TOPS) // epochs, len(TOPS) - 1)], 100)
        table = PredictionTable.of(k, k * 3, np.array([largest_divisor(known, int(x)) for x in k]), k)
        tables = {"natural": table, "stratified": table}
        line: dict[str, Any] = {
            "epoch": epoch,
            "step": epoch * 100,
            "examples": epoch * 25_600,
            "loss": 1 / epoch,
            "test_loss": 1 / epoch,
            **score_line(score(table, table, 0.9), explain_evaluation(config, tables), before),
            "seconds": float(epoch),
            "throughput": 9000.0,
        }
        before = line["D"]
        line["predictions_sha256"] = folder.write_predictions(epoch, tables)
        folder.append_metrics(line)


@contextmanager
def lab(root: Path) -> Iterator[str]:
    """A lab process; its address."""
    process = subprocess.Popen(
        [sys.executable, "-m", "gcdformer", "lab", str(root), "--no-open", "--port", "0"], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    try:
        yield process.stdout.readline().split()[1]
    finally:
        process.terminate()
        process.wait(30)


@contextmanager
def page() -> Iterator[Page]:
    with sync_playwright() as play:
        browser = play.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser.new_page(viewport={"width": 1400, "height": 900})
        browser.close()


def first_view(root: Path) -> dict[str, Any]:
    """Seconds from the request to the list on the page: with a fresh server, then again."""
    times = []
    for index in range(200):
        synthetic_run(root / f"run-{index:03d}", 300, root / "run-000" if index else None)
    with lab(root) as url, page() as tab:
        for _ in range(4):
            tab.goto("about:blank")
            began = time.perf_counter()
            tab.goto(url)
            tab.wait_for_selector(".runs tbody tr:nth-child(200)")
            times.append(time.perf_counter() - began)
    return {"runs": 200, "epochs": 300, "cold_s": times[0], "warm_s": median(times[1:])}


def measures(tab: Page, name: str) -> list[float]:
    return tab.evaluate("name => performance.getEntriesByName(name).map((one) => one.duration)", name)  # type: ignore[no-any-return]


def ask(root: Path) -> dict[str, Any]:
    """Milliseconds from a pair typed to the answer drawn; the first question loads the model and stands apart."""
    with lab(root) as url, page() as tab:
        tab.goto(url)
        tab.wait_for_timeout(6000)  # the lab imports torch one second after its first view
        tab.goto(url + "#/ask/example")
        tab.wait_for_selector(".verdict")
        for number in range(40):
            tab.fill("#a", str(1234 + 420 * number))
            tab.wait_for_timeout(60)
        found = measures(tab, "ask")
    return {"first_ms": found[0], "median_ms": median(found[1:]), "worst_ms": max(found[1:]), "questions": len(found) - 1}


def slider(root: Path) -> dict[str, Any]:
    """Milliseconds to redraw the page at another epoch, and from the choice to the picture, its tables fetched."""
    with lab(root) as url, page() as tab:
        tab.goto(url + "#/run/example?epoch=1")
        tab.wait_for_selector("body[data-ready]")
        tab.wait_for_timeout(6000)
        last = int(tab.get_attribute("#epoch", "max") or 1)
        cold = []
        for epoch in [*range(2, last + 1), *range(last - 1, 0, -1)]:
            cold.append(tab.evaluate(MOVE, epoch))
            tab.wait_for_timeout(100)
        redraws = measures(tab, "redraw")
    return {
        "redraw_median_ms": median(redraws),
        "redraw_worst_ms": max(redraws),
        "choice_to_picture_median_ms": median(cold),
        "choice_to_picture_worst_ms": max(cold),
        "moves": len(cold),
    }


def throughput(root: Path, pairs: int = 3, flags: Sequence[str] = ("--max-epochs", "6")) -> dict[str, Any]:
    """Examples/s of a training with the lab and a browser watching it, and without, in turn."""

    def train(name: str) -> float:
        path = root / name
        command = [sys.executable, "-m", "gcdformer", "train", "demo", "--out", str(path), "--quiet"]
        subprocess.run([*command, *flags], check=True)
        return mean(json.loads(line)["throughput"] for line in (path / "metrics.jsonl").read_text().splitlines()[1:])

    def watched(name: str) -> float:
        with lab(root) as url, page() as tab:
            tab.goto(url + "#/runs")
            measured: list[float] = []
            worker = threading.Thread(target=lambda: measured.append(train(name)))
            worker.start()
            tab.wait_for_selector(f"tr[data-run='{name}'].is-live", timeout=120_000)
            tab.goto(url + f"#/run/{name}")
            while worker.is_alive():
                tab.wait_for_timeout(500)
            return measured[0]

    (root / "kept").mkdir()
    shutil.copytree(EXAMPLE, root / "kept" / "example")
    closed, opened = [], []
    for pair in range(pairs):
        closed.append(train(f"closed-{pair}"))
        opened.append(watched(f"open-{pair}"))
    return {"closed_examples_per_s": closed, "open_examples_per_s": opened, "open_over_closed": mean(opened) / mean(closed)}


PARTS: dict[str, Callable[[Path], dict[str, Any]]] = {
    "first-view": first_view,
    "ask": ask,
    "slider": slider,
    "throughput": throughput,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", metavar="PART", help=", ".join(PARTS))
    wanted = parser.parse_args().parts or [name for name in PARTS if name != "throughput"]
    for name in wanted:
        with tempfile.TemporaryDirectory() as folder:
            print(json.dumps({name: PARTS[name](Path(folder))}), flush=True)


if __name__ == "__main__":
    main()
