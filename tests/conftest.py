"""Shared parts: a tiny configuration, a tiny trained run, and the command line as a function."""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace

import hypothesis
import pytest
import torch

from forked import TrialProcess, gcdformer, stop_server
from gcdformer import Config, Run, train
from leftovers import adopt_orphans, count_starts, nothing_left, starts

ROOT = Path(__file__).parent.parent


def tiny_config(**leaves: object) -> Config:
    """Seconds, not minutes: 16 dimensions, epochs of 20 steps of 16 examples, small tests."""
    defaults: dict[str, object] = dict(
        base=10, maximum=1000, operands="uniform", outcomes="natural", layers=1, dim=16, heads=2, lr=3e-3,
        schedule="constant", warmup=5, batch_size=16, epoch_size=320, test_size=200, max_epochs=3, threads=1, device="cpu")
    return Config().derive(**(defaults | leaves))


def build_site(source: Path, target: Path) -> subprocess.CompletedProcess[str]:
    """The documentation in a folder as a site, strictly."""
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1", "PYTHONPATH": str(ROOT / "src")}
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(target)]
    return subprocess.run(command, cwd=source, env=environment, capture_output=True, text=True, check=False)


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The documentation, built once by the first test process that needs it."""
    shared = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        shared = shared.parent
    folder = shared / "site"
    with (shared / "site.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.exists():
            done = build_site(ROOT, shared / "unchecked")
            assert done.returncode == 0 and "WARNING" not in done.stderr, done.stderr
            (shared / "unchecked").rename(folder)
    return folder


def pytest_configure(config: pytest.Config) -> None:
    hypothesis.settings.register_profile("ours", deadline=None)  # a busy machine makes no case wrong
    hypothesis.settings.load_profile("ours")
    adopt_orphans()
    count_starts()


def pytest_unconfigure() -> None:
    stop_server()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests in `make scale` may take a quarter of an hour each; all others have the limit of pyproject.toml. All fault tests
    start processes."""
    for item in items:
        if item.get_closest_marker("scale"):
            item.add_marker(pytest.mark.timeout(900))
        if item.path.parent.name == "faults":
            item.add_marker("processes")


@pytest.fixture(autouse=True)
def nothing_is_left_running(request: pytest.FixtureRequest) -> Iterator[None]:
    """A test ends the processes it starts, however it ends itself; and `make check` runs those that start none."""
    before = starts()
    with nothing_left():
        yield
    if request.node.get_closest_marker("processes") is None:
        assert starts() == before, "starts a process: mark it with @pytest.mark.processes"


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """Tests that follow do not inherit the threads of a command that took all cores: on a busy machine torch's small
    operations are many times slower with two."""
    yield
    torch.set_num_threads(1)


Figures = Callable[[int, str, object, object], None]


@pytest.fixture
def figures(record_property: Callable[[str, object], None]) -> Figures:
    """Note a figure of the fault suite: row, what, reached, wanted. They are printed as a table at the end."""
    def note(row: int, what: str, reached: object, wanted: object) -> None:
        record_property("figure", (row, what, str(reached), str(wanted)))

    return note


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """The figures of the fault suite, and what could not run here."""
    reports = [report for kind in terminalreporter.stats.values() for report in kind if hasattr(report, "user_properties")]
    rows = sorted({tuple(value) for report in reports for name, value in report.user_properties if name == "figure"})
    if rows:
        terminalreporter.section("faults: row, what, reached, wanted")
        for row, what, reached, wanted in rows:
            terminalreporter.write_line(f"{row:>3}  {what:<100} {reached:<36} {wanted}")
    for report in terminalreporter.stats.get("skipped", []):
        terminalreporter.write_line(f"not run here: {report.nodeid}: {report.longrepr[2]}")


@pytest.fixture(autouse=True, scope="session")
def own_state(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Tests remember trusted tasks in a folder of their own, not in the user's; and what is printed does not depend on how
    long it takes."""
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))
        environment.setenv("GCDFORMER_PROGRESS", "off")
        yield


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--device", default="cpu", help="where the tests of models and of training on a device run: cuda, mps")


@pytest.fixture
def device(request: pytest.FixtureRequest) -> torch.device:
    """The device of `--device`."""
    found = torch.device(request.config.getoption("--device"))
    if found.type == "meta":
        pytest.skip("the meta device has no values")
    return found


@pytest.fixture
def forked_trials(monkeypatch: pytest.MonkeyPatch) -> None:
    """The trials of sweeps that this process drives are forked, where it does not matter how they start; they start as a
    user's do in the tests that kill them in test_sweep.py."""
    monkeypatch.setattr("gcdformer.sweeps.launcher.subprocess", SimpleNamespace(Popen=TrialProcess, PIPE=subprocess.PIPE))


@pytest.fixture
def command() -> Callable[..., subprocess.CompletedProcess[str]]:
    return gcdformer


@pytest.fixture(scope="session")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A finished tiny run; tests must not change it."""
    return train(tiny_config(), tmp_path_factory.mktemp("runs") / "tiny")


@pytest.fixture(scope="session")
def uniform_run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A finished tiny run on uniform outcomes, which a natural prior changes a lot; tests must not change it."""
    config = tiny_config(outcomes="uniform", max_gcd=20, epoch_size=1600, lr=1e-2, max_epochs=2)
    return train(config, tmp_path_factory.mktemp("runs") / "uniform")
