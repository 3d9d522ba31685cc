"""Rows 4, 5 and 15: damaged files are named and never loaded in silence; folders of earlier versions still load."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from conftest import ROOT, Figures, gcdformer
from faults import TINY, Child, count, fingerprint, rng_of, run_to_end
from gcdformer import DamagedFile, UserError, load_run
from gcdformer.cli import main
from gcdformer.runs.folder import FILES, checkpoint_path, checkpoint_steps

WORDS: list[object] = ["train", *TINY, "--max-epochs", 3]
FORMATS = ROOT / "tests" / "data" / "formats"


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("whole")
    run_to_end([*WORDS, "--out", folder / "run"], folder / "log")
    return folder / "run"


def test_a_damaged_checkpoint_is_named_and_passed_over(whole: Path, tmp_path: Path, figures: Figures) -> None:
    rng = rng_of("truncated")
    wanted, good = count(20, 100), 0
    expected = fingerprint(whole)
    newest, before = checkpoint_steps(whole)[-1], checkpoint_steps(whole)[-2]
    for number in range(wanted):
        path = Path(shutil.copytree(whole, tmp_path / "run"))
        victim = checkpoint_path(path, newest) / rng.choice([*FILES, "SHA256SUMS"])
        if rng.random() < 0.25:
            victim.unlink()
        else:
            data = victim.read_bytes()
            victim.write_bytes(data[:rng.randrange(len(data))])
        child = Child([*WORDS, "--out", path], tmp_path / f"log-{number}")
        code, said = child.wait(), child.output()
        assert "Traceback" not in said
        named = str(victim) in said and f"resuming from step {before}" in said
        good += code == 0 and named and fingerprint(path) == expected
        shutil.rmtree(path)
    figures(4, "newest checkpoint truncated or a file of it missing: named, resumed from the one before, identical",
            f"{good} of {wanted}", f"{wanted} of {wanted}")
    assert good == wanted


def test_a_quiet_run_and_a_reader_name_it_too(whole: Path, tmp_path: Path) -> None:
    path = Path(shutil.copytree(whole, tmp_path / "run"))
    victim = checkpoint_path(path, checkpoint_steps(path)[-1]) / "model.safetensors"
    victim.write_bytes(b"")
    reader = gcdformer("predict", path, 12, 18)
    assert reader.returncode == 0 and str(victim) in reader.stderr and len(reader.stderr.splitlines()) == 1
    child = Child([*WORDS, "--out", path, "--quiet"], tmp_path / "log")
    assert child.wait() == 0 and str(victim) in child.output()


def read_all(path: Path) -> None:
    """Everything a person can ask of a run, as the verbs read it."""
    run = load_run(path)
    for line in run.metrics:
        run.scores(line["epoch"])
    run.epoch("best")
    for step in checkpoint_steps(path):
        run.predictor(step // run.config.training.steps_per_epoch)
    assert run.metrics[-1]["epoch"] == 3


def test_one_flipped_bit_anywhere_is_noticed(whole: Path, tmp_path: Path, figures: Figures) -> None:
    """The victims go round the kinds of files; `lock` and the report hold nothing that is read."""
    rng = rng_of("bits")
    path = Path(shutil.copytree(whole, tmp_path / "run"))
    patterns = ("config.toml", "metrics.jsonl", "predictions/*.npz", "checkpoints/*/*.safetensors",
                "checkpoints/*/state.json", "checkpoints/*/SHA256SUMS")
    kinds = [sorted(path.glob(pattern)) for pattern in patterns]
    wanted, noticed = count(50, 200), 0
    for number in range(wanted):
        victim = rng.choice(kinds[number % len(kinds)])
        data = victim.read_bytes()
        place = len(data) - 1 if number % 11 == 1 else rng.randrange(len(data))  # the last byte is often a newline
        victim.write_bytes(data[:place] + bytes([data[place] ^ 1 << rng.randrange(8)]) + data[place + 1:])
        with pytest.raises(DamagedFile) as caught:
            read_all(path)
        assert victim.name in str(caught.value) or victim.parent.name in str(caught.value), (victim, str(caught.value))
        noticed += 1
        victim.write_bytes(data)
    read_all(path)
    figures(5, "one bit flipped in a checkpoint, configuration, prediction table, metrics line: noticed and named",
            f"{noticed} of {wanted}", f"{wanted} of {wanted}")


def test_a_changed_newline_of_the_last_line_is_no_line_being_written(whole: Path, tmp_path: Path) -> None:
    path = Path(shutil.copytree(whole, tmp_path / "run")) / "metrics.jsonl"
    data = path.read_bytes()
    for bit in range(8):
        path.write_bytes(data[:-1] + bytes([data[-1] ^ 1 << bit]))
        with pytest.raises(DamagedFile, match=r"metrics\.jsonl"):
            load_run(path.parent).metrics  # noqa: B018
    for cut in range(1, len(data) - data[:-1].rfind(b"\n")):
        path.write_bytes(data[:-cut])
        assert len(load_run(path.parent).metrics) == 2


@pytest.mark.parametrize("version", sorted(p.name for p in FORMATS.iterdir()))
def test_folders_of_earlier_versions_are_read_and_gone_on_with(version: str, tmp_path: Path, figures: Figures) -> None:
    """Stored once for each format, never written again; see SECURITY.md and docs/RELIABILITY.md."""
    path = Path(shutil.copytree(FORMATS / version, tmp_path / "run"))
    read_all(path)
    run = load_run(path)
    assert run.made_by["version"] == version and run.metrics[-1]["step"] == 60
    assert run.predict([12, 35], [18, 21]).shape == (2,)
    for words in (["evaluate", path], ["explain", path], ["report", path], ["predict", path, 12, 18],
                  ["seen", path, 12, 18]):
        assert main([str(word) for word in words]) == 0, words
    run_to_end(["train", "--out", path, "--max-epochs", 4], tmp_path / "log")
    assert [line["epoch"] for line in load_run(path).metrics] == [1, 2, 3, 4]
    assert [line["loss"] for line in load_run(path).metrics[:3]] == [line["loss"] for line in run.metrics[:3]]
    figures(15, f"a stored folder of {version} is read, explained, reported and resumed", "yes", "yes")


def test_a_configuration_of_a_later_version_says_so(whole: Path, tmp_path: Path) -> None:
    from gcdformer.runs.files import sha256
    from gcdformer.runs.folder import HEADER
    path = Path(shutil.copytree(whole, tmp_path / "run")) / "config.toml"
    body = path.read_text().partition("\n")[2].replace("[task]", "[task]\ncolour = 3")
    path.write_text(f"{HEADER}{sha256(body.encode())}\n{body}")
    with pytest.raises(UserError, match=r"unknown field 'task\.colour'"):
        load_run(path.parent)
