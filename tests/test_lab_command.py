"""`gcdformer lab`: which folder is served, at which address, and a run's page as files."""

from __future__ import annotations

import http.client
import json
import re
import shutil
import signal
from pathlib import Path

import pytest

from conftest import gcdformer
from forked import Running
from gcdformer import Run
from gcdformer.lab.network import is_loopback, listen, outward_address, url_host

pytestmark = pytest.mark.processes


def output_of_lab(folder: Path, *words: object) -> str:
    """All that a lab prints, started in this folder and stopped once it has answered at the address that it prints first."""
    with Running("lab", *words, "--no-open", "--port", 0, cwd=folder) as process:
        first = process.stdout.readline()
        found = re.match(r"lab  http://(\S+):(\d+)/", first)
        assert found, first
        connection = http.client.HTTPConnection(found[1].strip("[]"), int(found[2]), timeout=100)
        connection.request("GET", "/api/about")
        assert connection.getresponse().status == 200
        connection.close()
        process.send_signal(signal.SIGTERM)
        return first + process.stdout.read()


@pytest.mark.parametrize("words", [["nothere"], ["nothere", "--export", "page"]], ids=" ".join)
def test_a_folder_that_is_not_there_is_an_error(words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    result = gcdformer("lab", "--no-open", *words)
    assert result.returncode == 2 and result.stdout == "" and not list(tmp_path.iterdir())
    assert result.stderr == "gcdformer: nothere: there is no such folder; name a run or a folder of runs\n"


def test_without_an_argument_and_without_runs_the_examples_are_shown(tmp_path: Path) -> None:
    text = output_of_lab(tmp_path)
    assert text.splitlines()[1] == "no runs in runs yet: showing the bundled examples"
    assert "listening" not in text and "caution" not in text


def test_a_lab_for_others_says_where_it_is_and_who_can_read_it(trained: Run, tmp_path: Path) -> None:
    shutil.copytree(trained.path, tmp_path / "runs" / "one")
    first, *rest = output_of_lab(tmp_path, "--host", "0.0.0.0").splitlines()
    assert first.endswith("(listening on 0.0.0.0; Ctrl-C to close)")
    assert outward_address(4) is None or "127.0.0.1" not in first
    assert rest[0] == "caution: anyone on the network can read these runs and ask their models"


@pytest.mark.parametrize(("host", "loopback", "shown"), [
    ("127.0.0.1", True, "127.0.0.1"), ("127.0.0.5", True, "127.0.0.5"), ("::1", True, "[::1]"),
    ("localhost", True, "localhost"),
    ("192.168.1.5", False, "192.168.1.5"), ("fe80::1", False, "[fe80::1]"), ("lab.local", False, "lab.local")])
def test_addresses_in_words(host: str, loopback: bool, shown: str) -> None:
    assert is_loopback(host) is loopback and url_host(host) == shown


def test_export(trained: Run, tmp_path: Path) -> None:
    site = tmp_path / "site"
    result = gcdformer("lab", trained.path, "--export", site)
    assert result.returncode == 0, result.stderr
    assert 'data-source="files"' in (site / "index.html").read_text()
    run = site / "data" / "runs" / "0"
    assert sorted(path.stem for path in (run / "epochs").iterdir()) == ["1", "2", "3"]
    view = json.loads((run / "run.json").read_text())
    assert view["checkpoints"] == sorted({view["best_epoch"], 3})
    assert sorted(path.name for path in (run / "models").iterdir()) == [
        f"{epoch}.{ending}" for epoch in view["checkpoints"] for ending in ("json", "safetensors")]
    again = gcdformer("lab", trained.path, "--export", site)
    assert again.returncode == 2 and "is there already" in again.stderr
    (tmp_path / "runs").mkdir()
    none = gcdformer("lab", tmp_path / "runs", "--export", tmp_path / "other")
    assert none.returncode == 2 and "holds no run" in none.stderr
    for name in ("one", "two"):
        shutil.copytree(trained.path, tmp_path / "runs" / name)
    many = gcdformer("lab", tmp_path / "runs", "--export", tmp_path / "other")
    assert many.returncode == 2 and "holds 2 runs" in many.stderr


def test_single_file_and_several_runs_need_export(trained: Run, tmp_path: Path) -> None:
    alone = gcdformer("lab", trained.path, "--single-file")
    assert alone.returncode == 2 and "--export" in alone.stderr
    several = gcdformer("lab", trained.path, trained.path, "--no-open")
    assert several.returncode == 2 and "--export" in several.stderr
    taken = gcdformer("lab", trained.path, "--single-file", "--export", tmp_path)
    assert taken.returncode == 2 and "name the HTML file" in taken.stderr


def test_a_port_that_is_taken(tmp_path: Path) -> None:
    with listen("127.0.0.1", 0) as taken:
        result = gcdformer("lab", tmp_path, "--no-open", "--port", taken.getsockname()[1])
    assert result.returncode == 2 and "--port" in result.stderr and result.stderr.count("\n") == 1
