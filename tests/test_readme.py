"""The commands of README.md and docs/cli.md, and README's Python, run as they stand but for smaller budgets."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

from conftest import ROOT, gcdformer
from forked import ended, fork
from gcdformer.cli import VERBS, main
from gcdformer.paper.claims import claim_verdicts
from gcdformer.paper.comparison import count_tables
from gcdformer.paper.ledger import ledger_entries

pytestmark = pytest.mark.processes

README = (ROOT / "README.md").read_text()
CLI = (ROOT / "docs" / "cli.md").read_text()
FENCE = re.compile(r"```(\w*)\n(.*?)```", re.DOTALL)
BLOCKS = FENCE.findall(README)
PAGES = ["README.md", "cli.md"]
PARTS = ["README.md about its demo", "README.md about other runs", "cli.md"]
"""What is run in one go: a part takes half a minute of CPU time at most, so that its limit is not met on a busy machine."""
PREDICTIONS = ("base_pred", "pred_uni10", "grokked_3", "base_pred_det", "base_pred_det2")
"""The tables of predictions f(k) of which the pages speak: most values that agree are theirs."""
LONGEST = 110
"""Lines of README: what it says beyond them belongs in docs/."""
SMALL = ["--epoch-size", "2000", "--test-size", "200", "--dim", "32", "--threads", "1", "--max-epochs", "2"]
BUDGET = {"train": SMALL, "describe": ["--no-timing"], "bench": ["--seconds", "1", "--dim", "32", "--threads", "1"],
          "mechanism": ["--pairs", "40"]}


def commands(page: str) -> list[list[str]]:
    """The table of README, or the first section of docs/cli.md, line by line."""
    if page == "README.md":
        lines = re.findall(r"^\|.*\| `(gcdformer [^`]+)` \|$", README, re.MULTILINE)
    else:
        examples = CLI.partition("## Presets and tasks")[0]
        lines = [line for kind, block in FENCE.findall(examples) if not kind for line in block.splitlines()]
    assert len(lines) > 15
    return [shlex.split(line, comments=True)[1:] for line in lines]


def write_small_sweep(path: Path) -> None:
    """The sweep file of docs/cli.md, with a smaller budget."""
    text = next(block for kind, block in FENCE.findall(CLI) if kind == "toml")
    small = text.replace("max_minutes = 5", "max_epochs = 1").replace(
        "[fixed]\n", "[fixed]\ndim = 32\nepoch_size = 2000\ntest_size = 200\n").replace("seeds = 2", "seeds = 1")
    assert small.count("max_epochs = 1") == small.count("dim = 32") == small.count("seeds = 1") == 1
    path.write_text(small)


def test_readme_opens_with_the_two_commands() -> None:
    first = BLOCKS[0][1]
    assert [line.split("#")[0].strip() for line in first.splitlines()] == ["make demo", "make test"]
    assert len(README.splitlines()) <= LONGEST
    for target in ("demo", "test"):
        result = subprocess.run(["make", "-n", target], cwd=ROOT, capture_output=True, text=True, check=False)
        assert result.returncode == 0, result.stderr


def test_readme_shows_small_pictures_of_the_lab_light_and_dark() -> None:
    """As scripts/lab_picture.py takes them: a PNG's width and height stand at its bytes 16 to 23."""
    names = re.findall(r'(?:src|srcset)="(docs/assets/lab-(?:light|dark)\.png)"', README)
    pictures = [(ROOT / name).read_bytes() for name in names]
    assert len(set(names)) == 2 and all(picture.startswith(b"\x89PNG") for picture in pictures)
    assert all(len(picture) < 150_000 for picture in pictures) and len({picture[16:24] for picture in pictures}) == 1
    assert (ROOT / "scripts" / "lab_picture.py").is_file()


def test_every_verb_is_shown() -> None:
    assert {words[0] for page in PAGES for words in commands(page)} >= set(VERBS) - {"demo", "import-reference"}


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.usefixtures("forked_trials")
def test_commands_run_in_order(part: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
                               capsys: pytest.CaptureFixture[str]) -> None:
    """In this process, as loading torch for each of them would take most of the time."""
    monkeypatch.chdir(tmp_path)
    write_small_sweep(tmp_path / "bases.toml")
    (tmp_path / "answers.csv").write_text("a,b,prediction\n12,18,6\n")
    page, _, about = part.partition(" about ")
    of_demo = [words for words in commands(page) if words[0] == "lab" or "runs/demo" in words]
    if about == "its demo":  # so small a model is sure of no answer: under another prior every pair would be searched for
        assert main(["demo", *SMALL, "--prior", "training"]) == 0
    for words in commands(page):
        if about and (words in of_demo) != (about == "its demo"):
            continue
        if words[0] == "mechanism":  # of a run that has learned a prime, which takes longer than a test
            shutil.rmtree(words[1])
            shutil.copytree(ROOT / "src" / "gcdformer" / "lab" / "example-grokking", words[1])
        serving = words[0] == "lab" and "--export" not in words
        resuming = words[:2] == ["train", "--out"] and "--base" not in words
        budget = ["--max-epochs", "3"] if resuming else BUDGET.get(words[0], [])
        code = main([*words, *(["--export", "demo-page"] if serving else budget)])
        out, err = capsys.readouterr()
        assert code == 0, (words, err)
        assert out or "--out" in words


def test_demo_with_a_small_budget(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for folder in ("demo", "demo-2"):
        result = gcdformer("demo", *SMALL)
        assert result.returncode == 0, result.stderr
        assert result.stdout.startswith(f"run  runs/{folder}\n")
        line = next(line for line in result.stdout.splitlines() if f"predict runs/{folder}" in line)
        asked = shlex.split(line[line.index("predict"):])[2:]
        answered = gcdformer("predict", f"runs/{folder}", *asked)
        assert answered.returncode == 0 and len(asked) % 2 == 0, answered.stderr
        assert all(operand in answered.stdout for operand in asked)


def test_python_runs(tmp_path: Path) -> None:
    code = next(block for kind, block in BLOCKS if kind == "python")
    small = code.replace("max_minutes=5", "max_epochs=2, epoch_size=2000, test_size=200, dim=32, threads=1")
    assert small != code
    assert ended(fork(run_python, small, tmp_path)) == 0


def run_python(code: str, folder: Path) -> None:
    os.chdir(folder)
    exec(code, {"__name__": "__main__"})


def test_the_transcript_is_what_is_printed(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Line by line; after a line `…` the rest is left out."""
    monkeypatch.chdir(ROOT)
    monkeypatch.setenv("COLUMNS", "100")
    session, = (block for kind, block in BLOCKS if kind == "console")
    for part in re.split(r"^\$ ", session, flags=re.MULTILINE)[1:]:
        command, _, shown = part.partition("\n")
        assert main(shlex.split(command)[1:]) == 0
        printed = capsys.readouterr().out
        whole, cut, _ = shown.partition("…\n")
        assert whole.count("\n") >= 3 and (printed.startswith(whole) if cut else printed == whole), printed


def test_files_it_names_are_there() -> None:
    for name in re.findall(r"(?:\]\(|src=\"|srcset=\")([^)#:\"]+)[)\"]", README):
        assert (ROOT / name).exists(), name
    assert shutil.which("make")


def test_the_demo_installs_only_what_it_needs(tmp_path: Path) -> None:
    """And whatever is installed already is not installed again."""
    (tmp_path / "scripts").mkdir()
    for name in ("Makefile", "pyproject.toml", "constraints.txt", "scripts/setup"):
        shutil.copy(ROOT / name, tmp_path / name)

    def installs(target: str) -> set[str]:
        done = subprocess.run(["make", "-n", target], cwd=tmp_path, capture_output=True, text=True, check=True)
        return set(re.findall(r"scripts/setup (\w+)", done.stdout))

    assert installs("demo") == {"lab"} and installs("test") == {"all"}
    (tmp_path / ".venv").mkdir()
    (tmp_path / ".venv" / ".ready-demo").touch()
    assert installs("demo") == set() and installs("test") == {"all"}
    (tmp_path / ".venv" / ".ready").touch()
    assert installs("test") == set()


def test_the_figures_of_the_reproduction_are_those_of_the_ledger() -> None:
    entries = ledger_entries()
    counts = count_tables(entries)
    total = counts.cells
    predicted = [table.counts for table in counts.tables if table.table.name in PREDICTIONS]
    assert len(predicted) == len(PREDICTIONS) == 5
    measured, agreeing = sum(count.measured for count in predicted), sum(count.agreeing for count in predicted)
    verdicts = {verdict.claim.name: verdict for verdict in claim_verdicts(entries)}
    rules, status = verdicts["rules"], {name: verdict.status for name, verdict in verdicts.items()}
    assert status.pop("prior") == "holds", "the claim of our own"
    held, undecided = ([*status.values()].count(word) for word in ("holds", "undecided"))
    assert held + undecided == len(status) and undecided == 2
    pages = [" ".join(text.split()) for text in (README, (ROOT / "docs" / "reproduce.md").read_text())]
    for page in pages:
        for number in (total.published, total.measured, total.agreeing):
            assert f"{number:,}" in page, number
        assert f"{total.agreeing - agreeing} of {total.measured - measured}" in page
        assert f"Of {len(status)} of its claims, {held} hold and two are undecided" in page
    assert f"{agreeing:,} of {measured:,}" in pages[1]
    assert f"{rules.held} of {rules.of} runs" in pages[0] and f"{rules.held} of the {rules.of} runs" in pages[1]
