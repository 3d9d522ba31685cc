"""The live figures of the site: the lab's page of the bundled runs as one file, and a still for readers without JavaScript.

A hook of MkDocs (see mkdocs.yml). In a page, `<figure class="live" data-view="#/run/example?only=grid">` is a figure of the
lab, by its address there. It gets a drawing or a sentence that is computed here from the same run; docs/assets/live.js puts
the lab's page in its place when the reader comes near.
"""

from __future__ import annotations

import re
import tempfile
from functools import cache
from html import escape
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

from gcdformer.display import figures, mechanism_figures
from gcdformer.display.reasons import reason
from gcdformer.display.style import COLOURS
from gcdformer.explanation.timeline import timeline
from gcdformer.lab.catalogue import EXAMPLES
from gcdformer.lab.export import export_single_file
from gcdformer.runs.explain import explain_run
from gcdformer.runs.mechanism import flip_in_run, saved_mechanism
from gcdformer.runs.run import Run

PAGE = "live.html"
FIGURE = re.compile(r'<figure class="live" data-view="([^"]+)">\n')
SCRIPT = '\n<script src="assets/live.js" defer></script>\n'
SAYS = {
    "grid": "A row for each k, a bar for the epochs at which it was correct.",
    "curves": "Correct GCD, accuracy and loss after each epoch.",
    "heat": "Each column is a true GCD k; strong cells are frequent predictions.",
    "clock": "Each dot is a digit, in the plane that carries the prime, coloured by its residue.",
    "places": "Strong cells: many answers move as the rules say when the value is exchanged there.",
}


def on_files(files: Files, config: Any) -> Files:
    """Called by MkDocs when it has found the pages."""
    files.append(File.generated(config, PAGE, content=live_page()))
    files.append(File.generated(config, "assets/colours.css", content=COLOURS.read_text(encoding="utf-8")))
    return files


def on_page_markdown(markdown: str, page: Page, **_: Any) -> str:
    """Called by MkDocs for every page."""
    if not FIGURE.search(markdown):
        return markdown
    return FIGURE.sub(lambda found: f'<figure class="live" data-src="{escape(PAGE + found[1])}">\n'
                                    f'<div class="still">{still(found[1])}</div>\n', markdown) + SCRIPT


@cache
def live_page() -> str:
    """The lab's page of the bundled runs; made once, also when MkDocs serves and builds again."""
    with tempfile.TemporaryDirectory() as folder:
        page = export_single_file([entry.path for entry in EXAMPLES.values()], Path(folder) / PAGE)
        return page.read_text(encoding="utf-8")


@cache
def still(view: str) -> str:
    """What a reader sees where the figure would be."""
    address = urlsplit(view.removeprefix("#/"))
    kind, _, name = address.path.partition("/")
    words = dict(parse_qsl(address.query))
    only = words.get("only", "")
    if name not in EXAMPLES or (only != "ask" and only not in SAYS) or (kind == "ask") != (only == "ask"):
        raise PluginError(f"live figure: {view} names no bundled run, or no figure with a still ({', '.join(SAYS)}, ask)")
    run = Run(EXAMPLES[name].path)
    if only == "ask":
        return "".join(f"<p>{escape(text)}</p>" for text in answers(run, words))
    drawn = re.sub(r"\s*\n\s*", " ", figures.to_svg(drawing(run, only, words), escape(SAYS[only])))
    return f"{drawn}<p>{escape(SAYS[only])}</p>"


def drawing(run: Run, only: str, words: dict[str, str]) -> Any:
    """The figure as reports draw it."""
    if only == "curves":
        return figures.curves({"": run.metrics}, timeline(run.metrics))
    if only == "grid":
        return figures.raster(run.metrics)
    if only == "heat":
        return figures.heat_map(run.prediction_tables(words.get("epoch", "last"))["stratified"])
    found = saved_mechanism(run)
    assert found is not None, f"{run.path}: has no mechanism"
    return mechanism_figures.clocks(found) if only == "clock" else mechanism_figures.places(found)


def answers(run: Run, words: dict[str, str]) -> list[str]:
    """The answer to the question of an address; under the natural prior and with a prime flipped too, if it asks so."""
    a, b = int(words["a"]), int(words["b"])
    own = int(run.predict(a, b))
    lines = [f"For the pair ({a:,}, {b:,}) the model answers {own}. {reason(explain_run(run, run.epoch()), a, b, own)}"]
    if "prior" in words:
        lines.append(f"Under the natural prior the same weights answer {int(run.predict(a, b, prior='natural'))}.")
    if "flip" in words:
        found = saved_mechanism(run)
        assert found is not None, f"{run.path}: has no mechanism"
        flipped = flip_in_run(run, found, int(words["flip"]), a, b)
        lines.append(f"With divisibility of a by {words['flip']} flipped inside the network, "
                     f"the rules say {flipped.expected}, and {flipped.answer} comes out.")
    return lines
