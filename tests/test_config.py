"""The schema: every field changes something or raises; bad values are one line that names the field."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import pytest
import torch

from conftest import tiny_config
from gcdformer import Config, Problem, UserError, preset, train
from gcdformer.config import config_leaves
from gcdformer.options import read_config_file
from gcdformer.presets import PRESETS
from gcdformer.runs.checkpoint import load_checkpoint
from gcdformer.runs.folder import checkpoint_steps

# A changed value for each leaf, with the others it needs. The run it gives must differ from the one without it.
# Heads of other widths are trained by autograd: each pair of widths takes the packed step ten seconds to compile, and
# test_packed.py has such pairs.
COSINE = {"schedule": "cosine", "horizon": 40}
AUTOGRAD = {"backend": "autograd"}
CHANGES: dict[str, tuple[object, dict[str, object]]] = {
    "task": ("division", {}), "base": (7, {}), "maximum": (900, {}),
    "operands": ("log-uniform", {}), "outcomes": ("uniform", {}), "max_gcd": (7, {"outcomes": "uniform"}),
    "alpha": (0.3, {"outcomes": "power"}), "final_alpha": (3.0, {"outcomes": "uniform", **COSINE}),
    "focus": ("7,11", {"outcomes": "uniform", **COSINE}),
    "focus_share": (0.9, {"outcomes": "uniform", "focus": "7", **COSINE}),
    "mixture_share": (0.5, {"outcomes": "mixture"}), "final_mixture_share": (0.9, {"outcomes": "mixture", **COSINE}),
    "weights_file": ("FILE", {"outcomes": "weights"}), "budget": (100, {}),
    "train_file": ("FILE", {}), "test_file": ("FILE", {}),
    "data_types": ("int[2]:int", {"task": "file", "train_file": "FILE", "test_file": "FILE"}),
    "repeat_share": (0.5, {}), "repeat_size": (20, {"repeat_share": 0.5}),
    "family": ("gru", {"heads": 0}), "encoder_layers": (2, {}), "decoder_layers": (2, {}), "encoder_dim": (8, AUTOGRAD),
    "decoder_dim": (8, AUTOGRAD), "encoder_heads": (4, AUTOGRAD), "decoder_heads": (4, AUTOGRAD),
    "hidden_dim": (12, {"family": "lstm", "heads": 0}), "positions": (50, {}), "cross_query": ("input", {}),
    "norm_epsilon": (0.01, {}), "framing": ("published", {}),
    "optimizer": ("muon", {}), "lr": (1e-3, {}),
    "schedule": ("inverse-sqrt", {}), "warmup": (3, {}), "horizon": (50, COSINE),
    "final_lr_share": (0.5, COSINE), "beta1": (0.5, {}), "beta2": (0.5, {}), "epsilon": (0.1, {}),
    "weight_decay": (0.5, {}), "clip": (0.01, {}), "average": (0.9, {}), "batch_size": (8, {}), "epoch_size": (160, {}),
    "precision": ("bf16", {}), "seed": (1, {}), "init_from": ("RUN", {}),
    "test_size": (300, {}), "fresh_tests": (True, {}), "threshold": (0.55, {}), "prior": (3, {}),
    "max_epochs": (1, {}), "max_minutes": (1e-9, {}), "stop_at_correct": (1, {"threshold": 0.51}),
    "checkpoint_minutes": (1e-9, {"stop_at_correct": 1, "max_epochs": 1}), "keep_checkpoints": (5, {}),
}
ELSEWHERE = {"device", "threads", "backend", "accumulate", "trackers"}  # below, in test_packed, _distributed, _trackers


def trace(config: Config, path: Path) -> str:
    """Everything a run leaves: metrics but the clock, weights, files."""
    run = train(config, path)
    lines = [{k: v for k, v in line.items() if k not in ("seconds", "throughput")} for line in run.metrics]
    steps = checkpoint_steps(path)
    weights = load_checkpoint(path, steps[-1]).model if steps else {}
    sums = {name: [list(w.shape), float(w.double().sum())] for name, w in weights.items()}
    tests = [p.name for p in sorted((path / "predictions").glob("*"))]
    return json.dumps([lines, sums, steps, tests])


def test_the_table_covers_every_leaf() -> None:
    assert set(CHANGES) | ELSEWHERE == {leaf.name for leaf in config_leaves()}


@pytest.mark.parametrize("name", CHANGES)
def test_every_field_changes_something(name: str, tmp_path: Path) -> None:
    value, needs = CHANGES[name]
    if name == "init_from":
        train(tiny_config(max_epochs=1, seed=5), tmp_path / "source")
        value = str(tmp_path / "source")
    if name == "threshold":
        needs = {"max_epochs": 12, "lr": 1e-2}
    if name == "checkpoint_minutes":
        value, needs = 1e-9, {"keep_checkpoints": 50}
    if name == "stop_at_correct":
        needs = {"max_epochs": 12, "lr": 1e-2}
    if name == "weights_file":
        value = str(tmp_path / "weights.csv")
        Path(value).write_text("k,weight\n6,1\n10,2\n")
    if name in ("train_file", "test_file", "data_types"):
        path = tmp_path / ("file.csv")
        path.write_text(f"a,b,{'answer' if name == 'data_types' else 'gcd'}\n" + "6,4,2\n12,30,6\n" * 30)
        needs = {key: str(path) if value == "FILE" else value for key, value in needs.items()}
        value = str(path) if value == "FILE" else value
    without = dict(needs)
    if name in ("alpha", "family", "data_types", "weights_file"):  # these cannot be left out alone
        without = {}
    before = trace(tiny_config(**without), tmp_path / "before")
    after = trace(tiny_config(**{**needs, name: value}), tmp_path / "after")
    assert before != after


def test_threads_and_device(tmp_path: Path) -> None:
    before = torch.get_num_threads()
    try:
        train(tiny_config(threads=2, max_epochs=1, backend="autograd"), tmp_path / "run")
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)
    if not torch.cuda.is_available():
        with pytest.raises(UserError, match="device: cuda"):
            train(tiny_config(device="cuda"), tmp_path / "other")
        assert not (tmp_path / "other").exists()


BAD = [
    ({"base": 1}, "base"), ({"base": 20_001}, "base"), ({"maximum": 1}, "--max"), ({"heads": 3}, "encoder_heads"),
    ({"decoder_heads": 5}, "decoder_heads"), ({"max_gcd": 2000, "outcomes": "uniform"}, "max_gcd"),
    ({"outcomes": "fair"}, "outcomes"), ({"operands": "benford"}, "operands"), ({"alpha": 2.0}, "alpha"),
    ({"outcomes": "power"}, "alpha"), ({"mixture_share": 0.5}, "mixture_share"), ({"max_gcd": 50}, "max_gcd"),
    ({"repeat_size": 10}, "repeat_share"), ({"hidden_dim": 4}, "hidden_dim"), ({"family": "lstm", "heads": 2}, "heads"),
    ({"family": "gru", "decoder_layers": 3, "heads": 0}, "decoder_layers"), ({"horizon": 10}, "horizon"),
    ({"schedule": "cosine", "horizon": 4}, "horizon"), ({"schedule": "inverse-sqrt", "warmup": 0}, "warmup"),
    ({"optimizer": "muon", "family": "gru", "heads": 0}, "optimizer"), ({"optimizer": "sgd"}, "optimizer"),
    ({"lr": float("nan")}, "lr"), ({"lr": -1}, "lr"), ({"batch_size": 0}, "batch_size"), ({"test_size": 3}, "test_size"),
    ({"seed": -1}, "seed"), ({"colour": 3}, "colour"), ({"device": "tpu"}, "device"), ({"base": "ten"}, "base"),
    ({"family": "lstm", "heads": 0, "cross_query": "input"}, "cross_query"), ({"final_lr_share": 0.1}, "final_lr_share"),
    ({"outcomes": "mixture", "final_alpha": 1.0, "schedule": "cosine", "horizon": 9}, "final_alpha"),
    ({"focus": "7", "schedule": "cosine", "horizon": 9}, "focus needs outcomes"),
    ({"outcomes": "weights"}, "weights_file"), ({"weights_file": "w.csv"}, "outcomes 'weights'"),
    ({"outcomes": "weights", "weights_file": "w.csv", "max_gcd": 50}, "max_gcd"),
    ({"outcomes": "weights", "weights_file": "w.csv", "focus": "7", "schedule": "cosine", "horizon": 9}, "focus needs"),
    ({"outcomes": "mixture", "final_mixture_share": 0.1}, "final_mixture_share needs schedule"),
    ({"outcomes": "uniform", "final_mixture_share": 0.1, "schedule": "cosine", "horizon": 9}, "final_mixture_share needs"),
]


@pytest.mark.parametrize(("leaves", "word"), BAD, ids=[word + str(i) for i, (_, word) in enumerate(BAD)])
def test_bad_values_name_the_field(leaves: dict[str, object], word: str) -> None:
    with pytest.raises(UserError, match=word) as caught:
        tiny_config(**leaves)
    assert "\n" not in str(caught.value)


def test_what_only_the_task_can_check() -> None:
    with pytest.raises(UserError, match="outcomes must be 'natural'"):
        Problem.of(Config().derive(task="addition", outcomes="uniform"))
    with pytest.raises(UserError, match="max: 10000000000 is too large"):
        Problem.of(Config().derive(task="addition", maximum=10**10))
    assert Problem.of(Config().derive(task="gcd", maximum=10**10)).longest_input == 10


@pytest.mark.parametrize("name", PRESETS)
def test_presets_are_valid_and_survive_toml(name: str) -> None:
    config = preset(name)
    Problem.of(config)
    assert Config.parse(tomllib.loads(config.to_toml())) == config
    assert PRESETS[name].__doc__


def test_paper_preset_is_as_published() -> None:
    paper = preset("paper")
    assert (paper.model.encoder_layers, paper.model.decoder_layers, paper.model.encoder_dim, paper.model.encoder_heads,
            paper.training.lr, paper.training.batch_size, paper.training.schedule, paper.training.epoch_size,
            paper.task.maximum, paper.evaluation.test_size, paper.model.positions) == (
            4, 4, 512, 8, 1e-5, 256, "constant", 300_000, 1_000_000, 100_000, 4096)
    rational = preset("paper-rational").training
    assert (rational.lr, rational.schedule, rational.warmup) == (1e-4, "inverse-sqrt", 10_000)


def test_every_leaf_has_a_sentence() -> None:
    for leaf in config_leaves():
        assert leaf.info.description and len(leaf.info.description) > 8, leaf.name
    flags = [leaf.flag for leaf in config_leaves()]
    assert len(set(flags)) == len(flags)


def test_what_loses_its_meaning_is_dropped() -> None:
    fast = preset("fast")
    recurrent = fast.derive(family="lstm")
    assert (recurrent.training.optimizer, recurrent.model.encoder_heads) == ("adam", 0)
    assert fast.data.final_alpha is not None and fast.derive(outcomes="natural").data.final_alpha is None
    assert fast.derive(task="addition").data.outcomes == "natural"
    assert fast.derive(schedule="constant").data.final_alpha is None
    focused = fast.derive(focus="11,13", focus_share=0.3)
    assert focused.data.outcomes_in_words == fast.data.outcomes_in_words == "focused inverse-sqrt to k^-1"
    for other in ({"outcomes": "log-uniform"}, {"schedule": "constant"}, {"task": "addition"}, {"train_file": "a.csv"}):
        assert focused.derive(**other).data.focus is focused.derive(**other).data.focus_share is None
    assert fast.derive(outcomes="natural").data.outcomes_in_words == "natural"
    mixture = fast.derive(outcomes="mixture", mixture_share=0.3, final_mixture_share=0.05)
    assert mixture.data.outcomes_in_words == "mixture to 5 %"
    assert mixture.derive(outcomes="uniform").data.final_mixture_share is None
    with pytest.raises(UserError, match="muon"):
        fast.derive(family="lstm", optimizer="muon")


def test_a_run_of_an_earlier_version_calls_the_backend_engine(tmp_path: Path) -> None:
    config = tiny_config(backend="autograd")
    tree = config.model_dump()
    tree["machine"]["engine"] = tree["machine"].pop("backend")
    assert Config.parse(tree) == config
    (tmp_path / "old.toml").write_text('[machine]\nengine = "autograd"\n')
    assert read_config_file(tmp_path / "old.toml") == {"backend": "autograd"}


def test_replace_changes_what_it_is_given_and_derive_what_follows() -> None:
    fast = preset("fast")
    changed = fast.replace(base=30, max_minutes=5)
    assert {name for name, value in changed.identity().items() if value != fast.identity()[name]} == {"base"}
    with pytest.raises(UserError, match="final_alpha needs outcomes"):
        fast.replace(outcomes="natural")
    with pytest.raises(UserError, match="'dim'.*Config.derive"):
        fast.replace(dim=96)
    assert fast.derive(outcomes="natural", dim=96) == fast.derive({"outcomes": "natural"}, {"dim": 96})
    own = fast.derive(task="my.py:Own", outcomes="uniform")
    assert own.derive(task="my.py:Own", base=30).data.outcomes == "uniform"  # the same task keeps its outcomes
