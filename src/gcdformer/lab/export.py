"""The page of some runs without a server: the same page, its data and the models' weights beside it, or all in one file.

Everything but training: the page runs the models itself. Files are named by a run's place in the list, not by its name.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path

from gcdformer.display.style import COLOURS
from gcdformer.errors import UserError
from gcdformer.lab.bundle import PRELOAD, STYLE, THEME, bundle, single_file, style_of
from gcdformer.lab.catalogue import Catalogue, ListedRun
from gcdformer.lab.decided import decided_files
from gcdformer.lab.paper import PAGE
from gcdformer.lab.places import more_files
from gcdformer.lab.priors import decides_in_page
from gcdformer.lab.schema import About, RunDetails
from gcdformer.lab.summaries import Summaries
from gcdformer.lab.views import epoch_view, run_view
from gcdformer.lab.weights import full_file, half_file, model_view, model_weights
from gcdformer.runs.folder import checkpoint_path
from gcdformer.version import __version__

STATIC = Path(__file__).parent / "static"
POLICY = ("default-src 'self'; img-src 'self' data:; style-src 'self'; object-src 'none'; base-uri 'none'; "
          "form-action 'none'")
SHEET = "page.css"
ASKED_IN_PAGE = "gcd"
"""The task whose models the page can run."""
BUNDLED = ("index.html", "api.js", "app.js", "asker.js", "dom.js", "download.js", "route.js", "share.js", "figures", "model",
           "styles", "views")
"""What an exported page has in its index file, its one script and its one style sheet."""
TOO_LARGE = "The model is large, so it was not asked under another prior when this page was made."
File = tuple[str, bytes]
"""A path and what is there."""


def export_runs(roots: Sequence[Path], target: Path) -> Path:
    """Write the page of these runs as files into `target`; the index file."""
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise UserError(f"export: {target} is there already and not an empty folder")
    files = list(data_files(entries_of(roots)))
    shutil.copytree(STATIC, target / "static", ignore=shutil.ignore_patterns(*BUNDLED))
    (target / "static" / SHEET).write_text(style_of(STATIC, COLOURS), encoding="utf-8")
    (target / "static" / "app.js").write_text(bundle(STATIC, "app.js"), encoding="utf-8")
    (target / "index.html").write_text(page_of_files(len(roots)), encoding="utf-8")
    for name, data in files:
        path = target / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    return target / "index.html"


def page_of_files(runs: int) -> str:
    """The index file of a page whose script and style are one file each, asked for together with the data that every view
    needs; a single run is what almost every view is about."""
    page = STYLE.sub("", PRELOAD.sub("", (STATIC / "index.html").read_text(encoding="utf-8")))
    data = ["about.json", "runs.json", *(["runs/0/run.json"] if runs == 1 else [])]
    first = "".join([f'<link rel="stylesheet" href="static/{SHEET}">\n',
                     *(f'<link rel="preload" as="fetch" crossorigin href="data/{name}">\n' for name in data)])
    meta = f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">\n'
    page = page.replace("<head>\n", f"<head>\n{meta}").replace(THEME, THEME + first)
    return page.replace('data-source="server"', 'data-source="files"')


def export_single_file(roots: Sequence[Path], target: Path) -> Path:
    """Write the page of these runs as one HTML file that needs nothing else."""
    if target.exists():
        raise UserError(f"export: {target} is there already; with --single-file name the HTML file to write")
    page = single_file(STATIC, COLOURS, dict(data_files(entries_of(roots))))
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(page, encoding="utf-8")
    return target


def entries_of(roots: Sequence[Path]) -> list[ListedRun]:
    """The runs at these folders, each with an id of its own; a folder above a single run stands for it."""
    entries: dict[str, ListedRun] = {}
    for root in roots:
        runs = Catalogue(root).entries()
        if runs[0].is_example and not (root / "config.toml").is_file():
            raise UserError(f"export: {root} holds no run; name the folder of one")
        if len(runs) > 1:
            raise UserError(f"export: {root} holds {len(runs)} runs; name their folders, for instance {runs[0].path}")
        number, name = 1, runs[0].name
        while name in entries:
            number, name = number + 1, f"{runs[0].name}~{number + 1}"
        entries[name] = ListedRun(name, name, runs[0].path)
    return list(entries.values())


def data_files(entries: Sequence[ListedRun]) -> Iterator[File]:
    """Everything that the page asks for: what the API would send, and the weights."""
    catalogue = Catalogue(entries[0].path)
    summaries = Summaries(catalogue)
    about: About = {"version": __version__, "training": False, "asking": True,
                    "folder": ", ".join(entry.name for entry in entries)}
    yield "data/about.json", to_json(about)
    yield from paper_files()
    for place, entry in enumerate(entries):
        yield from run_files(catalogue, entry, f"data/runs/{place}")
    yield "data/runs.json", to_json({"runs": [summaries.of(entry, live=False) for entry in entries]})


def run_files(catalogue: Catalogue, entry: ListedRun, folder: str) -> Iterator[File]:
    """A run, its epochs, and the models of its best and its last epoch as far as their weights are there."""
    view = run_view(catalogue, entry)
    if not view["columns"]["epoch"]:
        raise UserError(f"{entry.path}: no epoch has been evaluated yet, so there is nothing to export")
    can_ask = view["has_gcd"] and view["task"] == ASKED_IN_PAGE and decides_in_page(catalogue.config(entry))
    wanted = {view["best_epoch"], *view["checkpoints"][-1:]} if can_ask else set()
    run: RunDetails = {**view, "checkpoints": [epoch for epoch in view["checkpoints"] if epoch in wanted], "live": False}
    models = [model_view(catalogue, entry, epoch) for epoch in run["checkpoints"]]
    if any(not model["in_page"] for model in models):
        run["priors"]["refusal"] = TOO_LARGE
    yield f"{folder}/run.json", to_json(run)
    if view["has_gcd"]:
        for epoch in view["columns"]["epoch"]:
            yield f"{folder}/epochs/{epoch}.json", to_json(epoch_view(catalogue, entry, epoch))
        more = [*more_files(entry, run["checkpoints"])]
        if run["priors"]["refusal"] is None:
            more += decided_files(catalogue, entry, run["checkpoints"])
        yield from ((f"{folder}/{name}", to_json(value)) for name, value in more)
    for model in models:
        yield f"{folder}/models/{model['epoch']}.json", to_json(model)
        yield f"{folder}/models/{model['epoch']}.safetensors", small_weights(catalogue, entry, model["epoch"])


@cache
def paper_files() -> tuple[File, ...]:
    """The paper and the ledger, which are the same for every page."""
    return tuple((f"data/{name}", to_json(value)) for name, value in PAGE.get().files())


def small_weights(catalogue: Catalogue, entry: ListedRun, epoch: int) -> bytes:
    """In half precision; as they are if that cannot hold them, and then the page says what is wrong with them."""
    weights = model_weights(catalogue, entry, epoch)
    try:
        return half_file(weights, checkpoint_path(entry.path, epoch))
    except UserError:
        return full_file(weights)


def to_json(value: object) -> bytes:
    return json.dumps(value, allow_nan=False, separators=(",", ":")).encode()
