"""What people are used to: a settings file, a folder of runs, quiet, no colour, logs of batch jobs, completion."""

from __future__ import annotations

import io
import os
import pty
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from rich.console import Console

from conftest import tiny_config
from forked import ended, in_terminal, start
from gcdformer import Run, train
from gcdformer.cli import VERBS, main
from gcdformer.display.progress import in_window
from gcdformer.options import run_path
from gcdformer.sweeps.board import board_for
from gcdformer.sweeps.sweep import expand, read_sweep

CONTROL = re.compile(r"[\x00-\x09\x0b-\x1f\x7f]")
COLOUR = re.compile(r"\x1b\[(?:\d+;)*(?:3[0-8]|4[0-8]|9[0-7]|10[0-7])[;\dm]")
TINY = """
base = 10
max = 1000                      # fields are named as the flags are
dim = 16
heads = 2
threads = 1
backend = "autograd"

[data]
operands = "uniform"
outcomes = "natural"

[training]
optimizer = "adam"
schedule = "constant"
warmup = 5
batch-size = 16
epoch_size = 320

[evaluation]
test_size = 200
"""


def described(capsys: pytest.CaptureFixture[str], *words: object) -> str:
    """The configuration that some words mean, as TOML; or the error."""
    code = main(["describe", "--no-timing", *map(str, words)])
    out, err = capsys.readouterr()
    return out.partition("\n\nparameters")[0] if code == 0 else err


@pytest.fixture
def tiny_file(tmp_path: Path) -> Path:
    path = tmp_path / "tiny.toml"
    path.write_text(TINY)
    return path


def test_preset_then_file_then_flags(tiny_file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = described(capsys, "paper", "--config", tiny_file, "--base", 30, "--dim", 32)
    assert "base = 30\nmaximum = 1000" in text and "encoder_dim = 32\ndecoder_dim = 32" in text
    assert "encoder_layers = 4" in text and "positions = 4096" in text and "lr = 1e-05" in text
    assert "batch_size = 16\nepoch_size = 320" in text and "test_size = 200" in text
    tiny_file.write_text('max_epochs = 7\noutcomes = "power"\nalpha = 0.5\nencoder_dim = 32\n')
    text = described(capsys, "--config", tiny_file)
    assert "max_epochs = 7" in text and "max_minutes" not in text and "alpha = 0.5" in text and "decoder_dim = 64" in text
    text = described(capsys, "--config", tiny_file, "--outcomes", "uniform", "--max-minutes", 3, "--dim", 16)
    assert "max_minutes = 3" in text and "max_epochs" not in text and "alpha" not in text and "encoder_dim = 16" in text


def test_only_the_whole_has_to_be_valid(tiny_file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tiny_file.write_text('outcomes = "power"\nheads = 3\n')
    assert "alpha = 2.0" in described(capsys, "--config", tiny_file, "--alpha", 2, "--dim", 33)


def test_a_runs_own_file_says_everything(trained: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    own = trained.path / "config.toml"
    for preset in ([], ["paper"], ["paper-lstm"]):
        assert described(capsys, *preset, "--config", own) == tiny_config().to_toml().strip()
    out = tmp_path / "again"
    assert main(["train", "--config", str(own), "--out", str(out), "--quiet", "--max-epochs", "2"]) == 0
    capsys.readouterr()
    clocks = {"seconds", "throughput", "sha256"}
    lines = [[{k: v for k, v in line.items() if k not in clocks} for line in run.metrics] for run in (trained, Run(out))]
    assert lines[0][:2] == lines[1]
    assert main(["train", "--config", str(own), "--out", str(out), "--quiet"]) == 0
    assert len(Run(out).metrics) == 3
    assert main(["train", "--config", str(own), "--out", str(out), "--base", "7"]) == 2
    assert "base (10 there, 7 here)" in capsys.readouterr().err
    assert main(["sample", "--config", str(own), "--count", "3"]) == 0
    rows = capsys.readouterr().out.split()[1:]
    assert rows == [f"{a},{b},{g}" for (a, b), g in zip(trained.stream.examples(0, 3), trained.problem.answer(
        trained.stream.examples(0, 3))[:, 0], strict=True)]


@pytest.mark.parametrize(("text", "words"), [
    ("colour = 3", ["unknown field 'colour'", "the fields are", "batch_size"]),
    ("[training]\nbase = 3", ["unknown field 'training.base'", "[task]"]),
    ("[training]\nspeed = 3", ["unknown field 'training.speed'"]),
    ("[speed]\nlr = 3", ["unknown section 'speed'", "training"]),
    ("base = 1", ["task.base (--base)", "greater than or equal to 2"]),
    ('base = "ten"', ["task.base (--base)"]),
    ("heads = 3", ["encoder_heads must divide encoder_dim"]),
    ("base =", ["not TOML"]),
    ("base = 10\nbase = 11", ["not TOML"]),
    ("task = 3", ["task.task (--task)"]),
    ("task = [1]", ["task.task (--task)"]),
    ("\udcff", ["not UTF-8"]),
    ('task = "mine.py:Mine"', ["names the task mine.py:Mine", "name it yourself"]),
])
def test_a_bad_file_is_named_with_the_field(text: str, words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
                                            capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    Path("bad.toml").write_bytes(text.encode(errors="surrogateescape"))
    Path("mine.py").write_text("open('ran', 'w')")
    error = described(capsys, "--config", "bad.toml")
    assert error.startswith("gcdformer: ") and len(error.splitlines()) == 1 and "bad.toml" in error
    assert all(word in error for word in words), error
    assert not Path("ran").exists()


def test_a_run_file_that_was_changed_is_not_taken_for_the_runs(trained: Run, tmp_path: Path,
                                                               capsys: pytest.CaptureFixture[str]) -> None:
    copy = tmp_path / "copy.toml"
    changed = (trained.path / "config.toml").read_text().replace("base = 10", "base = 12")
    copy.write_text(changed)
    assert "checksum in its first line; if you changed it, remove that line" in described(capsys, "--config", copy)
    copy.write_text(changed.partition("\n")[2])
    assert "base = 12" in described(capsys, "--config", copy)
    assert "cannot be read" in described(capsys, "--config", tmp_path / "none.toml")


def test_relative_names_are_in_the_folder_of_runs(tiny_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
                                                  capsys: pytest.CaptureFixture[str]) -> None:
    here, home = tmp_path / "here", tmp_path / "home"
    here.mkdir()
    monkeypatch.chdir(here)
    monkeypatch.setenv("GCDFORMER_RUNS", str(home))
    words = ["--config", str(tiny_file), "--max-epochs", "1", "--quiet"]
    assert main(["train", *words, "--out", "a/b"]) == 0 and (home / "a" / "b" / "metrics.jsonl").exists()
    assert main(["demo", *words]) == 0 and (home / "demo" / "metrics.jsonl").exists()
    assert main(["train", *words, "--out", "c", "--init-from", "a/b"]) == 0 and (home / "c").is_dir()
    assert not list(here.iterdir())
    assert capsys.readouterr().out == ""
    assert main(["seen", "a/b", "12", "18"]) == 0 and main(["runs", "--columns", "path", "--format", "csv"]) == 0
    assert sorted(capsys.readouterr().out.split()[-3:]) == ["a/b", "c", "demo"]
    assert main(["evaluate", "./a/b"]) == 2 and main(["evaluate", str(home / "a" / "b"), "--quiet"]) == 0
    monkeypatch.setenv("GCDFORMER_RUNS", "near")
    assert [run_path(text) for text in ("x", "./x", "/x")] == [here / "near" / "x", here / "x", Path("/x")]
    monkeypatch.delenv("GCDFORMER_RUNS")
    assert main(["evaluate", "a/b"]) == 2
    assert [str(run_path(text)) for text in ("x", "./x", "/x")] == ["x", "x", "/x"]


@pytest.mark.processes
def test_a_batch_job_leaves_a_log_one_can_read(tiny_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No terminal, but the variables of one: a line per epoch, nothing that a terminal would obey."""
    log = tmp_path / "job.log"
    for name, value in {"TERM": "xterm-256color", "SLURM_JOB_ID": "4711", "SLURM_RESTART_COUNT": "2"}.items():
        monkeypatch.setenv(name, value)
    words = ("train", "--config", tiny_file, "--max-epochs", 3, "--out", tmp_path / "run")
    with log.open("w") as file, Path(os.devnull).open() as nothing:
        assert ended(start(words, nothing.fileno(), file.fileno(), file.fileno())) == 0
    text = log.read_text()
    lines = text.splitlines()
    assert not CONTROL.search(text) and max(map(len, lines)) <= 200
    assert re.findall(r"^epoch \d+(?=: loss)", text, re.MULTILINE) == ["epoch 1", "epoch 2", "epoch 3"]
    assert re.search(r"^started \d{4}-\d\d-\d\d \d\d:\d\d:\d\d on .*, job 4711, restart 2$", text, re.MULTILINE)
    assert "gcd in base 10" in text and "max_epochs 3 reached" in text


@pytest.mark.processes
def test_no_color(tiny_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The live page without colours; with them it is drawn in test_view.py."""
    assert COLOUR.search("\x1b[1;32m") and COLOUR.search("\x1b[38;5;1m") and not COLOUR.search("\x1b[1m\x1b[2K\x1b[0m")
    monkeypatch.setenv("NO_COLOR", "1")
    code, drawn = in_terminal("train", "--config", tiny_file, "--max-epochs", 1, "--out", tmp_path / "run")
    assert code == 0 and "\x1b[1m" in drawn and "examples/s" in drawn
    assert not COLOUR.search(drawn)


@pytest.mark.parametrize(("term", "live"), [("xterm-256color", True), ("dumb", False)])
def test_only_a_terminal_that_can_redraw_is_redrawn(term: str, live: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", term)
    monkeypatch.setenv("FORCE_COLOR", "1")
    master, slave = pty.openpty()
    with os.fdopen(slave, "w") as window, os.fdopen(master), io.StringIO() as pipe:
        assert in_window(Console(file=window)) == live
        assert not in_window(Console(file=pipe))


def test_quiet(tmp_path: Path, trained: Run, capsys: pytest.CaptureFixture[str]) -> None:
    sweep = tmp_path / "sweep.toml"
    sweep.write_text('[fixed]\nbase = 10\nmaximum = 1000\ndim = 16\nheads = 2\nbatch_size = 16\nepoch_size = 320\n'
                     'test_size = 200\n[budget]\nmax_epochs = 1\n')
    for trial in expand(read_sweep(sweep)):
        train(trial.config, tmp_path / "sweep" / trial.name, progress=False)
    for words in (["sweep", sweep, "--out", tmp_path / "sweep"], ["report", trained.path, "--out", tmp_path / "page.html"]):
        assert main([*map(str, words), "--quiet"]) == 0
        assert capsys.readouterr() == ("", "")
        assert main([*map(str, words)]) == 0
        assert capsys.readouterr().out
    silent = board_for([], 1, quiet=True, as_json=False)
    assert silent.page is None and silent.file is None


def offers(shell: str, script: Path, line: str, word: str) -> bool:
    """Whether the shell itself offers a word for an unfinished line."""
    if shell == "fish":
        code = f'source {script}; complete -C "{line}"'
    elif shell == "bash":
        empty = " ''" if line.endswith(" ") else ""
        code = (f"source {script}; COMP_WORDS=({line}{empty}); COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1)); "
                "_shtab_gcdformer; printf '%s\\n' \"${COMPREPLY[@]}\"")
    else:  # only its line editor completes: type in a terminal, and read until the word is on the screen
        code = (f"zmodload zsh/zpty; zpty z zsh -f -i; zpty -w z 'PS1=; fpath=({script.parent} $fpath); "
                "autoload -Uz compinit; compinit -u -D; echo rea\"\"dy'; zpty -r z seen '*ready*'; "
                f"zpty -w -n z $'{line}\\t\\t'; zpty -r z seen '*{word}*'; print -r -- \"$seen\"; zpty -d z")
    done = subprocess.run([shell, "-c", code], capture_output=True, text=True, check=False)
    return word in re.findall(r"[\w.-]+", re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", " ", done.stdout))


@pytest.mark.processes
@pytest.mark.parametrize("shell", ["bash", "fish", "zsh"])
def test_completion_in_the_shell_itself(shell: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
                                        capsys: pytest.CaptureFixture[str]) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    assert main(["completion", shell]) == 0
    script = tmp_path / "_gcdformer"
    script.write_text(capsys.readouterr().out)
    (tmp_path / "my-run").mkdir()
    monkeypatch.chdir(tmp_path)
    for line, word in [("gcdformer tr", "train"), ("gcdformer train --oper", "--operands"),
                       ("gcdformer train --operands ", "log-uniform"), ("gcdformer describe paper-b", "paper-batch64"),
                       ("gcdformer reproduce grokking_u", "grokking_uni5"), ("gcdformer evaluate my-", "my-run")]:
        assert offers(shell, script, line, word), (line, word)


@pytest.mark.processes
def test_help_stays_light() -> None:
    """`--help` and `--version` import neither numpy, nor pydantic, nor what makes completions."""
    code = ("import sys\nfrom gcdformer.cli import main\n"
            "try:\n    main(['--help'])\nexcept SystemExit:\n    pass\n"
            "print([name for name in ('numpy', 'pydantic', 'rich', 'shtab', 'torch') if name in sys.modules])")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.endswith("[]\n") and all(verb in done.stdout for verb in VERBS)


@pytest.mark.processes
def test_python_m_is_the_same_command() -> None:
    def run(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([sys.executable, "-m", "gcdformer", *words], capture_output=True, text=True, check=False)

    done = run("encode", "--base", "30", "160", "120")
    assert (done.returncode, done.stdout) == (0, "+ 5 10 + 4 0\n")
    assert run("train", "--help").stdout.startswith("usage: gcdformer train ")
