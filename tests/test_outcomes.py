"""P(gcd = k) of every training distribution: against a sum over all pairs, totient sums, and the stream itself."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from conftest import tiny_config
from gcdformer import Config, Problem, Stream, UserError
from gcdformer.data.outcomes import MOST_LISTED, largest_listed, training_outcomes
from gcdformer.numbers.distributions import OPERAND_DISTRIBUTIONS
from gcdformer.numbers.theory import LARGEST_TABLE, count_pairs, mobius, natural_outcomes, prime_factors

COSINE: dict[str, object] = {"schedule": "cosine", "warmup": 10, "horizon": 4096, "batch_size": 16}
LATE = 3072
"""A step at three quarters of that horizon, after 12 blocks of the stream."""


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 120), st.integers(1, 150), st.sampled_from(sorted(OPERAND_DISTRIBUTIONS)))
def test_natural_outcomes_are_a_sum_over_all_pairs(maximum: int, largest: int, name: str) -> None:
    operands, integers = OPERAND_DISTRIBUTIONS[name], np.arange(1, maximum + 1)
    each = np.outer(operands.probabilities(maximum), operands.probabilities(maximum))
    wanted = np.bincount(np.gcd.outer(integers, integers).ravel(), each.ravel(), minlength=largest + 1)[1:largest + 1]
    np.testing.assert_allclose(natural_outcomes(operands, maximum, largest), wanted, atol=1e-13)


def test_large_maxima() -> None:
    million = natural_outcomes(OPERAND_DISTRIBUTIONS["uniform"], 10**6, 999)
    counts = [count_pairs(10**6, k) for k in (1, 2, 97, 999)]
    np.testing.assert_allclose(million[[0, 1, 96, 998]], np.array(counts) / 1e12, rtol=1e-12)
    huge = natural_outcomes(OPERAND_DISTRIBUTIONS["uniform"], 2**53, 100)
    np.testing.assert_allclose(huge, 6 / np.pi**2 / np.arange(1, 101) ** 2, rtol=1e-5)
    with pytest.raises(UserError, match=f"max: .* up to {LARGEST_TABLE}"):
        natural_outcomes(OPERAND_DISTRIBUTIONS["log-uniform"], LARGEST_TABLE + 1, 100)


@given(st.integers(1, 3000))
def test_mobius(n: int) -> None:
    factors = prime_factors(n)
    assert mobius(n)[n] == (0 if max(factors.values(), default=1) > 1 else (-1) ** len(factors))


CASES: dict[str, tuple[dict[str, object], int]] = {
    "natural": ({"operands": "uniform", "outcomes": "natural"}, 1),
    "natural, log-uniform operands": ({"operands": "log-uniform", "outcomes": "natural"}, 1),
    "uniform": ({"outcomes": "uniform"}, 1),
    "power to 30": ({"outcomes": "power", "alpha": 0.7, "max_gcd": 30}, 1),
    "mixture": ({"outcomes": "mixture", "mixture_share": 0.3}, 1),
    "shifting": ({"outcomes": "uniform", "final_alpha": 2.0, **COSINE}, LATE),
    "a shifting mixture": ({"outcomes": "mixture", "mixture_share": 0.0, "final_mixture_share": 1.0, **COSINE}, LATE),
    "focused": ({"outcomes": "log-uniform", "focus": "7,11", "focus_share": 0.6, **COSINE}, 1),
    "a focus that fades": ({"outcomes": "log-uniform", "focus": "7,11", "focus_share": 0.6, **COSINE}, LATE + 512),
    "two sets": ({"outcomes": "log-uniform", "repeat_share": 0.5, "repeat_size": 8192}, 1),
    "two sets, shifting": ({"outcomes": "uniform", "final_alpha": 3.0, "repeat_share": 0.5, "repeat_size": 8192, **COSINE},
                           LATE),
    "a budget that comes again, shifting": ({"outcomes": "uniform", "final_alpha": 3.0, "budget": 8192, **COSINE}, LATE),
}


@pytest.mark.parametrize("name", CASES)
def test_the_stream_has_these_outcomes(name: str) -> None:
    """Blocks around the step, of runs that differ in nothing but the seed."""
    leaves, step = CASES[name]
    config = tiny_config(maximum=100_000, **leaves)
    problem = Problem.of(config)
    wanted = training_outcomes(config, problem, step)
    last = step * config.training.batch_size
    first = (last - 1) // 4096 * 4096
    rows = np.concatenate([Stream.of(config.replace(seed=n), problem).examples(first, first + 4096) for n in range(40)])
    k = np.gcd(rows[:, 0], rows[:, 1])
    seen = np.bincount(k[k <= len(wanted)], minlength=len(wanted) + 1)[1:]
    spread = np.sqrt(len(rows) * wanted * (1 - wanted)) + 1
    assert len(wanted) == largest_listed(config) and wanted.sum() <= 1 + 1e-9
    assert (np.abs(seen - len(rows) * wanted) < 6 * spread).all(), name


def test_a_file_of_weights_and_a_file_of_examples(tmp_path: Path) -> None:
    weights, examples = tmp_path / "weights.csv", tmp_path / "examples.csv"
    weights.write_text("k,weight\n6,1\n10,3\n")
    config = tiny_config(outcomes="weights", weights_file=str(weights))
    wanted = np.zeros(10)
    wanted[[5, 9]] = 0.25, 0.75
    np.testing.assert_allclose(training_outcomes(config, Problem.of(config), 5), wanted)
    examples.write_text("a,b,gcd\n" + "6,4,2\n" * 3 + "12,30,6\n")
    config = tiny_config(train_file=str(examples), test_file=str(examples))
    counted = training_outcomes(config, Problem.of(config), 5)
    assert counted[1] == 0.75 and counted[5] == 0.25 and counted.sum() == 1


def test_how_many_are_listed() -> None:
    def listed(**leaves: object) -> int:
        return largest_listed(Config().derive(**leaves))

    natural = {base: listed(base=base, outcomes="natural") for base in (2, 10, 30, 101, 1000, 2401)}
    assert natural == {2: 127, 10: 999, 30: 899, 101: 100, 1000: 999, 2401: MOST_LISTED}
    assert listed(base=10, outcomes="natural", maximum=60) == 60
    assert listed(outcomes="uniform") == 100 and listed(outcomes="uniform", max_gcd=200) == 200
    assert listed(outcomes="uniform", max_gcd=5000) == MOST_LISTED
