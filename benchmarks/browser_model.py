"""How fast the model is in a browser: `python benchmarks/browser_model.py [--preset fast | --run DIR] [--half]`.

A page on a local static server loads the module and weights (fresh ones of the preset's shape, or a run's), and answers.
cold: from the navigation to the first answer, in a new browser each time. later: milliseconds of each further answer, with
and without a trace, and under a prior (which is for trained weights: fresh ones are sure of nothing, so that the search is
long). exported, for a run: its exported page opened at a question, from the first paint to the answer, and the bytes
transferred. Needs quiet cores; figures are JSON.
"""

from __future__ import annotations

import argparse
import functools
import http.server
import json
import os
import shutil
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any

from playwright.sync_api import sync_playwright
from safetensors.torch import save

from gcdformer import Problem, Run
from gcdformer.config import Config
from gcdformer.lab.export import export_runs
from gcdformer.models import Seq2Seq, build_model
from gcdformer.presets import preset

NAMES = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
CHROMIUM = os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, NAMES)), None)
STATIC = Path(__file__).parent.parent / "src" / "gcdformer" / "lab" / "static"
COLD_STARTS = 5
PAGE = """<!doctype html><title>model</title><link rel="icon" href="data:,">
<link rel="preload" as="fetch" crossorigin href="model.safetensors">
<link rel="preload" as="fetch" crossorigin href="config.json">
MODULES
<script type="module">
import { loadModel } from "./model/model.js";
const [weights, config] = await Promise.all([
  fetch("model.safetensors").then((response) => response.arrayBuffer()),
  fetch("config.json").then((response) => response.json()),
]);
const fetched = performance.now();
const model = loadModel({ weights, config });
const loaded = performance.now();
document.title = `${model.ask(160, 120).answer}`;
const answered = performance.now();
Object.assign(window, { model, cold: { fetched, loaded, answered } });
</script>"""
LATER = """(options) => {
  const times = [];
  const given = options.prior ? { prior: Float64Array.from({ length: 100 }, (_, i) => -Math.log(i + 1)) } : options;
  for (let i = 0; i < 300; i += 1) {
    const [a, b] = [1 + ((i * 7919) % 999983), 1 + ((i * 104729) % 999979)];
    const began = performance.now();
    model.ask(a, b, given);
    times.push(performance.now() - began);
  }
  return times;
}"""


EXPORTED = """() => {
  const { startTime, duration } = performance.getEntriesByName("ask")[0];
  const shown = performance.getEntriesByName("first-contentful-paint")[0].startTime;
  const loaded = [...performance.getEntriesByType("navigation"), ...performance.getEntriesByType("resource")];
  return { shown, answered: startTime + duration, bytes: loaded.reduce((sum, { transferSize }) => sum + transferSize, 0) };
}"""


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """A static server on a port of 127.0.0.1; its address."""
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=folder)) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/"
        finally:
            server.shutdown()
            thread.join()


def measure(config: Config, model: Seq2Seq, half: bool) -> dict[str, Any]:
    weights = save((model.half() if half else model).state_dict())
    modules = [f'<link rel="modulepreload" href="model/{path.name}">' for path in sorted((STATIC / "model").iterdir())]
    with tempfile.TemporaryDirectory() as name, sync_playwright() as play:
        folder = Path(name)
        shutil.copytree(STATIC / "model", folder / "model")
        (folder / "index.html").write_text(PAGE.replace("MODULES", "\n".join(modules)))
        (folder / "config.json").write_text(config.model_dump_json())
        (folder / "model.safetensors").write_bytes(weights)
        with served(folder) as url:
            cold, later = [], {}
            for number in range(COLD_STARTS):
                browser = play.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
                page = browser.new_page()
                page.goto(url)
                page.wait_for_function("window.cold")
                cold.append(page.evaluate("window.cold"))
                if number == COLD_STARTS - 1:
                    for kind, options in (("plain", {}), ("trace", {"trace": True}), ("prior", {"prior": True})):
                        times = page.evaluate(LATER, options)
                        later[kind] = {"median_ms": round(median(times), 3), "worst_ms": round(max(times), 3)}
                browser.close()
    cold_ms = {name: round(median(start[name] for start in cold), 1) for name in ("fetched", "loaded", "answered")}
    source = sum(path.stat().st_size for path in (STATIC / "model").iterdir())
    return {"weights_bytes": len(weights), "module_bytes": source, "cold_ms": cold_ms,
            "cold_worst_ms": round(max(start["answered"] for start in cold), 1), "later": later}


def measure_exported(run: Path) -> dict[str, Any]:
    """The page of `gcdformer lab RUN --export DIR`, opened at a question, in a new browser each time."""
    with tempfile.TemporaryDirectory() as name, sync_playwright() as play:
        export_runs([run], Path(name) / "site")
        starts = []
        with served(Path(name) / "site") as url:
            for _ in range(COLD_STARTS):
                browser = play.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
                page = browser.new_page()
                page.goto(f"{url}#/ask/{run.name}?a=160&b=120")
                page.wait_for_selector(".verdict")
                page.wait_for_load_state("networkidle")
                starts.append(page.evaluate(EXPORTED))
                browser.close()
    waits = [start["answered"] - start["shown"] for start in starts]
    return {"shown_ms": round(median(start["shown"] for start in starts), 1), "answered_after_ms": round(median(waits), 1),
            "worst_ms": round(max(waits), 1), "transfer_bytes": starts[0]["bytes"]}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--preset", default="fast")
    parser.add_argument("--run", type=Path)
    parser.add_argument("--half", action="store_true", help="weights in float16")
    words = parser.parse_args()
    if words.run:
        config, model = Run(words.run).config, Run(words.run).predictor().model
    else:
        config = preset(words.preset)
        model = build_model(config, Problem.of(config), seed=0)
    found = measure(config, model, words.half)
    if words.run:
        found["exported"] = measure_exported(words.run)
    print(json.dumps({words.run.name if words.run else words.preset: found}))


if __name__ == "__main__":
    main()
