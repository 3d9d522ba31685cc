"""Named configurations. A variant calls its parent and changes a few fields.

`fast` is for two CPU cores; `paper` and its variants are as published (with 4,096 positions and fresh test sets).
"""

from __future__ import annotations

import shlex
from collections.abc import Callable

from gcdformer.config import OF_A_DISTRIBUTION, Config, Leaf, Value, config_leaves
from gcdformer.errors import UserError, did_you_mean


def fast() -> Config:
    """A small model, Muon at a high learning rate, weight decay, a base of many primes, a focus on the next six that
    it lacks: minutes on two CPU cores."""
    return Config().derive(base=1260, operands="log-uniform", outcomes="inverse-sqrt", final_alpha=1.0,
                           focus="11,13,17,19,23,29", focus_share=0.35, layers=1, dim=64, heads=4,
                           optimizer="muon", lr=1e-3, weight_decay=0.2, schedule="cosine", warmup=500, batch_size=256,
                           max_minutes=15)


def hour() -> Config:
    """`fast` with 96 dimensions and a longer list in focus: most of the 100 GCD in an hour."""
    return fast().derive(focus="11,13,17,19,23,29,31,37,41,43,47,53,81,27,49,32", focus_share=0.5,
                         dim=96, lr=1.5e-3, epoch_size=600_000, max_minutes=60)


def grok() -> Config:
    """`fast` with uniform operands and natural outcomes in base 2401 = 7^4, a quarter of the examples from 50,000 that come
    again and again: 2, which no digit shows, is learned all at once, after minutes of nothing."""
    return fast().derive(base=2401, operands="uniform", outcomes="natural", repeat_share=0.25, repeat_size=50_000)


def demo() -> Config:
    """`fast` in five minutes, with short epochs and three primes in focus, which can be learned in that time. The outcomes
    shift to the natural exponent, 2, and answers are decided under the natural prior, by averaged weights: what is half
    learned is then answered by a divisor that is known, and the rules hold to the end."""
    return fast().derive(outcomes="log-uniform", final_alpha=2.0, focus="11,13,17", focus_share=0.35, epoch_size=100_000,
                         test_size=20_000, max_minutes=5, average=0.999, prior="natural")


def paper() -> Config:
    """Uniform operands, natural outcomes; 4+4 layers, 512 dimensions, 8 heads, Adam at 1e-5, batches of 256."""
    return Config().derive(base=10, operands="uniform", outcomes="natural", layers=4, dim=512, heads=8, positions=4096,
                           lr=1e-5, schedule="constant", warmup=0, batch_size=256, fresh_tests=True)


def paper_mixture() -> Config:
    """5 % of uniform outcomes among natural ones."""
    return paper().derive(outcomes="mixture", mixture_share=0.05)


def paper_inverse() -> Config:
    """Log-uniform outcomes, uniform operands."""
    return paper().derive(outcomes="log-uniform")


def paper_benford() -> Config:
    """Log-uniform operands, natural outcomes."""
    return paper().derive(base=1000, operands="log-uniform")


def paper_benford_inverse() -> Config:
    """Log-uniform operands and outcomes: the paper's best explainable models."""
    return paper_benford().derive(outcomes="log-uniform")


def paper_benford_inverse_200() -> Config:
    """The same with GCD up to 200."""
    return paper_benford_inverse().derive(max_gcd=200)


def paper_benford_sqrt() -> Config:
    """Log-uniform operands, outcomes with P(k) ~ 1/sqrt(k)."""
    return paper_benford().derive(outcomes="inverse-sqrt")


def paper_benford_1_5() -> Config:
    """Log-uniform operands, outcomes with P(k) ~ k^-1.5."""
    return paper_benford().derive(outcomes="inverse-1.5")


def paper_uniform() -> Config:
    """Uniform operands and uniform outcomes: classes whose members change."""
    return paper().derive(outcomes="uniform")


def paper_batch64() -> Config:
    """Batches of 64, log-uniform operands."""
    return paper_benford().derive(batch_size=64)


def paper_lstm() -> Config:
    """LSTM of four layers and 1024 dimensions."""
    return paper().derive(family="lstm", hidden_dim=1024)


def paper_gru() -> Config:
    """GRU of four layers and 1024 dimensions."""
    return paper().derive(family="gru", hidden_dim=1024)


def paper_rational() -> Config:
    """The tasks on fractions: Adam at 1e-4, inverse square root, 10,000 steps of warm-up."""
    return paper().derive(task="comparison", maximum=100_000, lr=1e-4, schedule="inverse-sqrt", warmup=10_000)


PRESETS: dict[str, Callable[[], Config]] = {
    "fast": fast,
    "hour": hour,
    "grok": grok,
    "demo": demo,
    "paper": paper,
    "paper-mixture": paper_mixture,
    "paper-inverse": paper_inverse,
    "paper-benford": paper_benford,
    "paper-benford-inverse": paper_benford_inverse,
    "paper-benford-inverse-200": paper_benford_inverse_200,
    "paper-benford-sqrt": paper_benford_sqrt,
    "paper-benford-1.5": paper_benford_1_5,
    "paper-uniform": paper_uniform,
    "paper-batch64": paper_batch64,
    "paper-lstm": paper_lstm,
    "paper-gru": paper_gru,
    "paper-rational": paper_rational,
}


VERSIONS: dict[str, str] = {"fast": "4", "paper": "1"}
"""Recipes in which the paper's tables are measured. A change to one of these presets needs a new version, which is kept with
each result, so that results of two recipes are never taken for one; a test compares the preset with its version."""


def preset_version(name: str) -> str:
    """The version of a preset in which tables are measured."""
    if name not in VERSIONS:
        raise UserError(f"preset: tables are measured in {' or '.join(VERSIONS)}, not in '{name}'")
    return VERSIONS[name]


def preset(name: str) -> Config:
    """A preset by name."""
    if name not in PRESETS:
        raise UserError(f"unknown preset '{name}': the presets are {', '.join(PRESETS)}{did_you_mean(name, PRESETS)}")
    return PRESETS[name]()


def repeat_command(config: Config, name: str) -> str:
    """The command that trains this configuration again: the nearest preset, and a flag for each leaf that it lacks."""
    differences = {key: lacks for key in PRESETS if (lacks := changes_from(PRESETS[key](), config)) is not None}
    best = min(differences, key=lambda key: len(differences[key]))
    changes = differences[best]
    words = [word for leaf in config_leaves() if leaf.name in changes for word in flag_words(leaf, changes[leaf.name])]
    return shlex.join(["gcdformer", "train", best, "--out", f"runs/{name}", *words])


def changes_from(start: Config, config: Config) -> dict[str, Value] | None:
    """The leaves to give so that `start.derive` makes `config`, which drops by itself what no longer has a meaning; None if
    it still has something that `config` leaves out."""
    changes: dict[str, Value] = {}
    while True:
        try:
            made = start.derive(**changes)
        except UserError:
            return None
        leaves = [leaf for leaf in config_leaves() if leaf.section != "machine" or leaf.name == "threads"]
        pairs = {leaf: [getattr(getattr(each, leaf.section), leaf.name) for each in (made, config)] for leaf in leaves}
        lacking = {leaf: want for leaf, (have, want) in pairs.items() if have != want
                   and not (want is None and leaf.section == "limits")}
        if not lacking:
            return changes
        more = {leaf.name: want for leaf, want in lacking.items() if want is not None}
        if any(leaf.name in OF_A_DISTRIBUTION and want is None for leaf, want in lacking.items()):
            more["outcomes"] = config.data.outcomes  # naming it drops the parameters that it came with
        if more.items() <= changes.items():
            return None
        changes |= more


def flag_words(leaf: Leaf, value: Value) -> list[str]:
    """A leaf on the command line."""
    if isinstance(value, bool):
        return [leaf.flag if value else leaf.flag.replace("--", "--no-", 1)]
    return [leaf.flag, str(value)]
