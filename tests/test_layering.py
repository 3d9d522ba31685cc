"""Each layer imports only from those above it, and the layers that promise to know no torch import none."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parent.parent / "src" / "gcdformer"
LAYERS = ["version", "errors", "config", "presets", "numbers", "tasks", "data", "models", "evaluation", "explanation",
          "mechanism", "display", "runs", "training", "sweeps", "paper", "report", "lab", "options", "commands", "cli"]
MODULES = sorted(path for path in PACKAGE.rglob("*.py") if path.parent != PACKAGE or path.stem in LAYERS)


def layer_of(path: Path) -> str:
    return path.relative_to(PACKAGE).with_suffix("").parts[0]


def imported_layers(path: Path) -> set[str]:
    """The layers it imports. `_repr_html_` may call display when it is used: the one exception."""
    found = set()
    tree = ast.parse(path.read_text())
    shown = {id(node) for function in ast.walk(tree) if getattr(function, "name", "") == "_repr_html_"
             for node in ast.walk(function) if isinstance(node, ast.ImportFrom) and "gcdformer.display" in str(node.module)}
    for node in ast.walk(tree):
        if id(node) in shown:
            continue
        if isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module)
        elif isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
    return {name.split(".")[1] for name in found if name.startswith("gcdformer.")}


def test_every_folder_is_a_layer() -> None:
    assert {layer_of(path) for path in MODULES} <= set(LAYERS)
    assert {path.name for path in PACKAGE.iterdir() if path.is_dir() and path.name != "__pycache__"} <= set(LAYERS)


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_imports_come_from_above(path: Path) -> None:
    own = LAYERS.index(layer_of(path))
    for name in imported_layers(path):
        assert LAYERS.index(name) <= own, f"{path} imports {name}, which is below it"


@pytest.mark.processes
def test_these_import_no_torch() -> None:
    """One after another in one process: whatever imports it first is named."""
    modules = ["gcdformer", "gcdformer.cli", "gcdformer.config", "gcdformer.data.files", "gcdformer.data.testsets",
               "gcdformer.evaluation", "gcdformer.runs.run", "gcdformer.runs.folder", "gcdformer.numbers.theory",
               "gcdformer.lab.server", "gcdformer.lab.export", "gcdformer.paper.comparison"]
    code = """
import importlib, sys
for name in sys.argv[1:]:
    importlib.import_module(name)
    print("torch" in sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", code, *modules], capture_output=True, text=True, check=True)
    assert dict(zip(modules, done.stdout.split(), strict=True)) == dict.fromkeys(modules, "False")
