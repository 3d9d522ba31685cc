"""One run's page as files: the same page, its data beside it as JSON. Everything but asking the model."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from pathlib import Path

from gcdformer.display.style import COLOURS
from gcdformer.errors import UserError
from gcdformer.lab.catalogue import Catalogue
from gcdformer.lab.places import more_files
from gcdformer.lab.schema import About, RunDetails
from gcdformer.lab.summaries import Summaries
from gcdformer.lab.views import epoch_view, run_view
from gcdformer.version import __version__

STATIC = Path(__file__).parent / "static"


def export_run(root: Path, target: Path) -> Path:
    """Write the page of the run at `root` (or of the only run below it) into `target`; the index file."""
    catalogue = Catalogue(root)
    entries = catalogue.entries()
    if entries[0].is_example:
        raise UserError(f"export: {root} holds no run; name the folder of one")
    if len(entries) > 1:
        raise UserError(f"export: {root} holds {len(entries)} runs; name the folder of one, for instance {entries[0].path}")
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise UserError(f"export: {target} is there already and not an empty folder")
    entry = entries[0]
    run: RunDetails = {**run_view(catalogue, entry), "checkpoints": [], "live": False}
    if not run["columns"]["epoch"]:
        raise UserError(f"{entry.path}: no epoch has been evaluated yet, so there is nothing to export")
    shutil.copytree(STATIC, target / "static", ignore=shutil.ignore_patterns("index.html"))
    shutil.copy(COLOURS, target / "static")
    page = (STATIC / "index.html").read_text(encoding="utf-8")
    (target / "index.html").write_text(page.replace('data-source="server"', 'data-source="files"'), encoding="utf-8")
    about: About = {"version": __version__, "training": False, "asking": False, "folder": entry.name}
    write(target / "data" / "about.json", about)
    write(target / "data" / "runs.json", {"runs": [Summaries(catalogue).of(entry, live=False)]})
    write(target / "data" / "run.json", run)
    if run["has_gcd"]:
        for epoch in run["columns"]["epoch"]:
            write(target / "data" / "epochs" / f"{epoch}.json", epoch_view(catalogue, entry, epoch))
        for name, value in more_files(entry, run["checkpoints"]):
            write(target / "data" / name, value)
    return target / "index.html"


def write(path: Path, value: Mapping[str, object]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value, allow_nan=False, separators=(",", ":")), encoding="utf-8")
