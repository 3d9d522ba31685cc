"""Rows 8, 9 and 10: ranks and chunks see one stream; one process trains a run; a changed configuration is refused."""

from __future__ import annotations

import signal
import time
from pathlib import Path

import numpy as np
import pytest

from conftest import Figures, tiny_config
from faults import OFTEN, TINY, Child, count, fingerprint, one_line_error, rng_of, run_to_end
from forked import SERVER
from gcdformer import Config, Problem, Stream, UserError, train
from gcdformer.config import Leaf, config_leaves
from gcdformer.runs.folder import RunFolder
from gcdformer.training.session import FILE_FIELDS, agreed_config

WORDS: list[object] = ["train", *TINY, *OFTEN, "--max-epochs", 3]
EXAMPLES = 100_000


def stream() -> Stream:
    config = Config().derive(outcomes="log-uniform", seed=5)
    return Stream.of(config, Problem.of(config))


@pytest.mark.parametrize("ranks", [1, 2, 4])
def test_ranks_and_chunks_see_one_stream(ranks: int, figures: Figures) -> None:
    """Rank r of n takes its slice of each batch, from a stream of its own, in chunks of any size."""
    rng = rng_of(f"ranks {ranks}")
    expected = stream().examples(0, EXAMPLES)
    batch = 1000
    share = batch // ranks
    found = np.empty_like(expected)
    for rank in range(ranks):
        own = stream()
        for first in range(rank * share, EXAMPLES, batch):
            place = first
            while place < first + share:
                stop = min(place + rng.randrange(1, 2 * share), first + share)
                found[place:stop] = own.examples(place, stop)
                place = stop
    same = int((found == expected).all(1).sum())
    figures(8, f"stream with {ranks} ranks, chunks of any size", f"{same} the same", f"{EXAMPLES} the same")
    assert same == EXAMPLES


def test_two_processes_start_on_one_folder(tmp_path: Path, figures: Figures) -> None:
    """The one that trains is held until the other has ended."""
    wanted, good = count(4, 20), 0
    for number in range(wanted):
        path, barrier = tmp_path / f"run-{number}", SERVER.Barrier(2)
        pair = [Child([*WORDS, "--out", path], tmp_path / f"log-{number}-{i}", barrier=barrier, hold=("warm-up", 4))
                for i in range(2)]
        while all(child.process.is_alive() for child in pair):
            assert not all(child.held.value for child in pair), "both train"
            time.sleep(0.001)
        for child in pair:
            child.let_go()
        codes = [child.wait() for child in pair]
        assert sorted(codes) == [0, 2], [child.output() for child in pair]
        winner = pair[codes.index(0)]
        message = one_line_error(pair[codes.index(2)])
        assert "in use by" in message
        good += winner.step.value == 60
    figures(9, "two processes start on one folder: exactly one runs", f"{good} of {wanted}", f"{wanted} of {wanted}")
    assert good == wanted


def test_the_lock_of_a_dead_process_does_not_hold(tmp_path: Path, figures: Figures) -> None:
    wanted, good = count(4, 20), 0
    run_to_end([*WORDS, "--out", tmp_path / "whole"], tmp_path / "log")
    for number in range(wanted):
        words, log = [*WORDS, "--out", tmp_path / f"run-{number}"], tmp_path / f"log-{number}"
        child = Child(words, log, hold=("warm-up", 4))
        child.wait_held()
        child.send(signal.SIGKILL)
        child.wait()
        assert f"process {child.process.pid} " in (tmp_path / f"run-{number}" / "lock").read_text()
        run_to_end(words, log)
        good += fingerprint(tmp_path / f"run-{number}") == fingerprint(tmp_path / "whole")
    figures(9, "stale lock of a dead process: the next one runs", f"{good} of {wanted}", f"{wanted} of {wanted}")
    assert good == wanted


def test_a_lock_that_is_a_link_is_not_followed(tmp_path: Path) -> None:
    """A folder from elsewhere must not make us write to what its links point at."""
    (tmp_path / "run").mkdir()
    (tmp_path / "precious").write_text("precious")
    (tmp_path / "run" / "lock").symlink_to(tmp_path / "precious")
    with pytest.raises(UserError, match="lock: cannot be written"):
        train(tiny_config(max_epochs=1), tmp_path / "run")
    (tmp_path / "run" / "lock").unlink()
    (tmp_path / "run" / ".config.toml.new").symlink_to(tmp_path / "precious")
    train(tiny_config(max_epochs=1), tmp_path / "run")
    assert (tmp_path / "precious").read_text() == "precious"


# What each leaf can be changed to, where the next number would not do; and what has to go with it.
OTHERS: dict[str, dict[str, object]] = {
    "task": {"task": "comparison"}, "outcomes": {"outcomes": "uniform"}, "max_gcd": {"outcomes": "uniform", "max_gcd": 7},
    "alpha": {"outcomes": "power", "alpha": 0.3},
    "final_alpha": {"outcomes": "uniform", "final_alpha": 1.0, "schedule": "cosine", "horizon": 99},
    "focus": {"outcomes": "uniform", "focus": "7,11", "schedule": "cosine", "horizon": 99},
    "focus_share": {"outcomes": "uniform", "focus": "7", "focus_share": 0.2, "schedule": "cosine", "horizon": 99},
    "mixture_share": {"outcomes": "mixture", "mixture_share": 0.2},
    "final_mixture_share": {"outcomes": "mixture", "final_mixture_share": 0.2, "schedule": "cosine", "horizon": 99},
    "budget": {"budget": 500}, "repeat_share": {"repeat_share": 0.5}, "repeat_size": {"repeat_share": 0.5, "repeat_size": 9},
    "family": {"family": "gru"}, "encoder_dim": {"encoder_dim": 8}, "decoder_dim": {"decoder_dim": 8},
    "encoder_heads": {"encoder_heads": 4}, "decoder_heads": {"decoder_heads": 4}, "positions": {"positions": 99},
    "hidden_dim": {"family": "gru", "hidden_dim": 8}, "horizon": {"schedule": "cosine", "horizon": 99},
    "final_lr_share": {"schedule": "cosine", "final_lr_share": 0.5, "horizon": 99}, "beta1": {"beta1": 0.5},
    "beta2": {"beta2": 0.5}, "init_from": {"init_from": "elsewhere"}, "threshold": {"threshold": 0.8},
    "prior": {"prior": "natural"}, "average": {"average": 0.99},
    "train_file": {"train_file": "a.csv"}, "test_file": {"test_file": "b.csv"},
    "trackers": {"trackers": "tensorboard"}, "weights_file": {"outcomes": "weights", "weights_file": "w.csv"},
    "data_types": {"task": "file", "data_types": "int:int", "train_file": "a.csv", "test_file": "b.csv"},
}


def other_value(leaf: Leaf, config: Config) -> dict[str, object]:
    if leaf.name in OTHERS:
        return OTHERS[leaf.name]
    value = getattr(getattr(config, leaf.section), leaf.name)
    if leaf.kind is bool:
        return {leaf.name: not value}
    if leaf.choices:
        return {leaf.name: next(choice for choice in leaf.choices if choice != value)}
    if leaf.kind is float:
        return {leaf.name: (value or 0.1) * 0.5}
    return {leaf.name: (value or 0) + 1}


def test_every_changed_field_is_refused_or_means_something(tmp_path: Path, figures: Figures) -> None:
    config = tiny_config(max_epochs=1)
    train(config, tmp_path / "run")
    folder = RunFolder(tmp_path / "run")
    refused = accepted = 0
    for leaf in config_leaves():
        if leaf.section in ("limits", "machine"):  # documented: limits extend a run, the machine is no part of it
            changed = config.replace(**({"device": "cpu"} if leaf.name == "device" else other_value(leaf, config)))
            assert agreed_config(folder, changed, {}) == changed, leaf.name
            accepted += 1
            continue
        changed = config.derive(**other_value(leaf, config))
        assert changed != config, leaf.name
        with pytest.raises(UserError, match=rf"another configuration: .*\b{leaf.name} \("):
            agreed_config(folder, changed, {f"{leaf.name}_sha256": "0"} if leaf.name in FILE_FIELDS else {})
        refused += 1
    figures(10, "configuration changed between stop and resume", f"{refused} fields refused, {accepted} mean something",
            "every field")
    assert refused + accepted == len(list(config_leaves())) and refused > accepted > 0


def test_the_command_line_refuses_too(tmp_path: Path) -> None:
    run_to_end([*WORDS, "--max-epochs", 1, "--out", tmp_path / "run"], tmp_path / "log")
    before = fingerprint(tmp_path / "run")
    for flag, value in (("--seed", 7), ("--lr", 0.5), ("--batch-size", 8), ("--base", 7)):
        child = Child([*WORDS, "--out", tmp_path / "run", flag, value], tmp_path / f"log{flag}")
        assert child.wait() == 2 and flag.strip("-").replace("-", "_") + " (" in one_line_error(child)
    assert fingerprint(tmp_path / "run") == before


def test_other_versions_of_what_the_bits_depend_on_are_told(tmp_path: Path) -> None:
    from gcdformer.runs.files import sha256
    from gcdformer.runs.folder import HEADER
    run_to_end([*WORDS, "--max-epochs", 1, "--out", tmp_path / "run"], tmp_path / "log")
    path = tmp_path / "run" / "config.toml"
    body = "\n".join('numpy = "1.0"' if line.startswith("numpy = ") else line
                     for line in path.read_text().splitlines()[1:]) + "\n"
    path.write_text(f"{HEADER}{sha256(body.encode())}\n{body}")
    assert "last trained with numpy 1.0, now" in run_to_end([*WORDS, "--out", tmp_path / "run"], tmp_path / "log-2")
