"""The wheel and the sdist, built and installed into a fresh environment that sees the core dependencies and nothing else."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tarfile
import tomllib
import venv
import zipfile
from collections.abc import Iterator
from importlib.metadata import distribution
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from conftest import ROOT, tiny_config

pytestmark = pytest.mark.processes

CORE = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]
TRAIN = ["train", "--config", "tiny.toml", "--out", "run", "--max-epochs", "1"]


def needed(requirements: list[str], found: set[str]) -> Iterator[str]:
    """The names of what some requirements need, and of what these need in turn."""
    for text in requirements:
        requirement = Requirement(text)
        extras = requirement.extras or {""}
        name = re.sub(r"[-_.]+", "-", requirement.name).lower()
        if name in found or requirement.marker and not any(requirement.marker.evaluate({"extra": e}) for e in extras):
            continue
        found.add(name)
        yield requirement.name
        yield from needed(distribution(name).requires or [], found)


def link_core(site: Path) -> None:
    """Links to the installed core dependencies and what they need, in the site-packages of an environment."""
    for name in needed(CORE, set()):
        one = distribution(name)
        tops = {file.parts[0] for file in one.files or []} - {"..", "__pycache__"}
        for top in tops:
            source = Path(str(one.locate_file(top)))
            if source.exists() and not (site / top).exists():
                (site / top).symlink_to(source)


def run(*words: object, cwd: Path) -> subprocess.CompletedProcess[str]:
    environment = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
    return subprocess.run([str(word) for word in words], cwd=cwd, env=environment, capture_output=True, text=True,
                          timeout=300, check=False)


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the wheel and the sdist, built from the sources here."""
    folder = tmp_path_factory.mktemp("dist")
    done = run(sys.executable, "-m", "hatchling", "build", "-d", folder, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    return folder


@pytest.fixture(scope="module")
def fresh(built: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The gcdformer of an environment of its own, installed from the wheel; beside it the core dependencies only."""
    home = tmp_path_factory.mktemp("fresh")
    venv.create(home / "env", symlinks=True)
    python = home / "env" / "bin" / "python"
    (wheel,) = built.glob("*.whl")
    done = run(sys.executable, "-m", "pip", "--python", python, "install", "--quiet", "--no-deps", "--no-index",
               "--disable-pip-version-check", wheel, cwd=home)
    assert done.returncode == 0, done.stderr
    (site,) = home.glob("env/lib/python*/site-packages")
    link_core(site)
    (home / "tiny.toml").write_text(tiny_config(backend="autograd").to_toml())
    return home


def test_a_wheel_from_the_sdist_is_the_same(built: Path, tmp_path: Path) -> None:
    (sdist,), (wheel,) = built.glob("*.tar.gz"), built.glob("*.whl")
    with tarfile.open(sdist) as archive:
        archive.extractall(tmp_path, filter="data")
    (source,) = tmp_path.iterdir()
    for name in ("README.md", "LICENSE", "tests/conftest.py", "Makefile", "constraints.txt"):
        assert (source / name).is_file(), name
    done = run(sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", tmp_path / "again", cwd=source)
    assert done.returncode == 0, done.stderr
    with zipfile.ZipFile(wheel) as one, zipfile.ZipFile(tmp_path / "again" / wheel.name) as two:
        assert {i.filename: i.CRC for i in one.infolist()} == {i.filename: i.CRC for i in two.infolist()}
        names = set(one.namelist())
    files = (path.relative_to(ROOT / "src") for path in (ROOT / "src").rglob("*") if path.is_file())
    ours = {str(path) for path in files if "__pycache__" not in path.parts}
    assert ours <= names and not any(name.startswith(("tests", "docs")) for name in names)


@pytest.fixture(scope="module")
def trained_there(fresh: Path) -> Path:
    """The same with a run that it has trained."""
    seen = run(fresh / "env" / "bin" / "python", "-c", "import gcdformer; print(gcdformer.__file__)", cwd=fresh).stdout
    assert seen.startswith(str(fresh / "env"))
    done = run(fresh / "env" / "bin" / "gcdformer", *TRAIN, cwd=fresh)
    assert done.returncode == 0 and "report  run/report.html" in done.stdout, done.stderr
    return fresh


def test_the_core_compiles_and_explains(trained_there: Path) -> None:
    """By itself: in an environment that has compiled nothing, its bands take as long as all other verbs."""
    done = run(trained_there / "env" / "bin" / "gcdformer", "explain", "run", "--json", cwd=trained_there)
    assert done.returncode == 0 and json.loads(done.stdout)["bands"], done.stderr


def test_the_core_evaluates_asks_and_reports(trained_there: Path) -> None:
    code = """
import sys
import gcdformer.models.packed.kernels
import gcdformer.sweeps.launcher
from gcdformer.cli import VERBS, main

for verb in VERBS:
    try:
        main([verb, "--help"])
    except SystemExit as end:
        assert end.code == 0, verb
for line in sys.stdin:
    assert main(line.split()) == 0, line
"""
    verbs = """evaluate run
        predict run 160 120
        seen run 160 120
        report run --figures figures
        lab run --export page
        reproduce base_gcd --bases 10 --show
        completion bash
        sample --format int2int --count 3"""
    done = run_code(trained_there, code, verbs)
    assert done.returncode == 0, done.stderr
    assert (trained_there / "page" / "index.html").is_file() and "_shtab_gcdformer" in done.stdout


def test_verbs_that_need_more_name_the_extra(fresh: Path) -> None:
    code = """
import sys
import numpy as np
from gcdformer import UNREADABLE, PredictionTable, UserError
from gcdformer.cli import main

for line in sys.stdin:
    assert main(line.split()) == 2, line
try:
    PredictionTable.of(*np.array([[1], [1], [UNREADABLE]])).to_frame()
except UserError as error:
    print(error, file=sys.stderr)
"""
    (fresh / "one.toml").write_text("[budget]\nmax_epochs = 1\n")
    verbs = ["lab --no-open", "runs .", "sample --format parquet --out x.parquet", "sweep one.toml --out one --engine ray",
             "sweep one.toml --out one --engine ray --asha"]
    done = run_code(fresh, code, "\n".join(verbs))
    assert done.returncode == 0, done.stderr
    extras = re.findall(r"(\w+) is not installed: pip install 'gcdformer\[(\w+)\]'", done.stderr)
    assert [extra for _, extra in extras] == ["lab", "query", "query", "sweep", "sweep", "query"]
    assert len(done.stderr.splitlines()) == len(extras)


def run_code(fresh: Path, code: str, stdin: str) -> subprocess.CompletedProcess[str]:
    """Python code in the fresh environment."""
    environment = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
    return subprocess.run([fresh / "env" / "bin" / "python", "-c", code], input=stdin, cwd=fresh, env=environment,
                          capture_output=True, text=True, check=False)
