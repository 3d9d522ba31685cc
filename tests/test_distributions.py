"""Every distribution of operands and GCD against its exact probabilities, by chi-square; a wrong one fails the same test."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

import numpy as np
import pytest
from scipy import stats

from gcdformer import Config
from gcdformer.numbers.distributions import (
    DEFAULT_MIXTURE_SHARE,
    EXPONENTS,
    OPERAND_DISTRIBUTIONS,
    Mixture,
    PairDistribution,
    Probabilities,
    coprime_pairs,
    fast_gcd,
    pair_distribution,
)
from gcdformer.numbers.encoding import Integers
from gcdformer.numbers.theory import count_pairs

DRAWS = 200_000
ACCEPT = 1e-4
MAXIMUM = 100_000  # for the distributions of the GCD; their exact probabilities need no small M
SMALL = 500  # where the exact probabilities are sums over all pairs


def generator(seed: int = 20) -> np.random.Generator:
    return np.random.default_rng(seed)


def p_value(cells: Integers, probabilities: Probabilities) -> float:
    """Chi-square of drawn cells 0..n-1 against P(0), ..., P(n-1); neighbours are merged until 10 are expected."""
    assert len(cells) == DRAWS and abs(probabilities.sum() - 1) < 1e-9
    assert cells.min() >= 0 and cells.max() < len(probabilities)
    observed = np.bincount(cells, minlength=len(probabilities))
    if observed[probabilities == 0].any():
        return 0.0
    expected = DRAWS * probabilities
    starts, total = [0], 0.0
    for cell, expectation in enumerate(expected.tolist()):
        if total >= 10:
            starts.append(cell)
            total = 0.0
        total += expectation
    if total < 10:
        starts.pop()
    observed, expected = np.add.reduceat(observed, starts), np.add.reduceat(expected, starts)
    assert len(starts) > 5 and expected.min() >= 10
    return float(stats.chisquare(observed, expected * (observed.sum() / expected.sum())).pvalue)


def distribution(maximum: int = MAXIMUM, **leaves: object) -> PairDistribution:
    config = Config().derive(maximum=maximum, **({"operands": "uniform"} | leaves))
    return pair_distribution(config.data, maximum)


def drawn_gcds(pairs: PairDistribution, seed: int = 20) -> Integers:
    """GCD of drawn pairs, computed anew: cell k - 1 for GCD k."""
    a, b = pairs.draw(generator(seed), DRAWS)
    return np.asarray(np.gcd(a, b) - 1)


def power_distribution(alpha: float, max_gcd: int = 100, maximum: int = MAXIMUM) -> Probabilities:
    """P(gcd = 1), ..., P(gcd = M) for P(k) ~ k^-alpha on 1..K."""
    weights = [k**-alpha if k <= max_gcd else 0.0 for k in range(1, maximum + 1)]
    return np.array(weights) / sum(weights)


@cache
def natural_uniform(maximum: int = MAXIMUM) -> Probabilities:
    """The same for independent uniform operands, by totient sums."""
    return np.array([count_pairs(maximum, k) for k in range(1, maximum + 1)]) / maximum**2


def natural_by_sums(operands: str, maximum: int = SMALL) -> Probabilities:
    """The same for any operands, by a sum over all pairs."""
    p = OPERAND_DISTRIBUTIONS[operands].probabilities(maximum)
    n = np.arange(1, maximum + 1)
    return np.bincount(np.gcd.outer(n, n).ravel() - 1, weights=np.outer(p, p).ravel(), minlength=maximum)


def mixed(share: float, natural: Probabilities, max_gcd: int = 100) -> Probabilities:
    return share * power_distribution(0.0, max_gcd, len(natural)) + (1 - share) * natural


def floored_log_uniform(rng: np.random.Generator, maximum: int) -> Integers:
    """The wrong distribution: the published code rounds down, the paper's text to the nearest integer."""
    return np.floor(np.exp(rng.random(DRAWS) * np.log(maximum))).astype(np.int64)


def log_uniform_probability(n: int, maximum: int) -> float:
    """P(n) as the text defines it: the length of the x in [0, ln N] with exp(x) nearest to n."""
    return float(np.log(min(n + 0.5, maximum)) - np.log(max(n - 0.5, 1))) / float(np.log(maximum))


# Operand distributions

@pytest.mark.parametrize("maximum", [7, 1000, 1_000_000])
@pytest.mark.parametrize("operands", list(OPERAND_DISTRIBUTIONS))
def test_operands_follow_their_distribution(operands: str, maximum: int) -> None:
    drawn = OPERAND_DISTRIBUTIONS[operands].draw(generator(), maximum, DRAWS)
    assert p_value(drawn - 1, OPERAND_DISTRIBUTIONS[operands].probabilities(maximum)) > ACCEPT


@pytest.mark.parametrize("maximum", [1, 2, 9, 1000])
def test_operand_probabilities_are_the_definition(maximum: int) -> None:
    uniform = OPERAND_DISTRIBUTIONS["uniform"].probabilities(maximum)
    assert np.allclose(uniform, [1 / maximum] * maximum, rtol=1e-12)
    rounded = [1.0] if maximum == 1 else [log_uniform_probability(n, maximum) for n in range(1, maximum + 1)]
    assert np.allclose(OPERAND_DISTRIBUTIONS["log-uniform"].probabilities(maximum), rounded, rtol=1e-9)


@pytest.mark.parametrize("maximum", [7, 1000, 1_000_000])
def test_wrong_operands_are_noticed(maximum: int) -> None:
    rounded = OPERAND_DISTRIBUTIONS["log-uniform"].probabilities(maximum)
    assert p_value(floored_log_uniform(generator(), maximum) - 1, rounded) < ACCEPT
    assert p_value(OPERAND_DISTRIBUTIONS["uniform"].draw(generator(), maximum, DRAWS) - 1, rounded) < ACCEPT


@pytest.mark.parametrize(("operands", "maximum"), [("uniform", 7), ("uniform", 1000), ("log-uniform", 7)])
def test_a_missing_last_integer_is_noticed(operands: str, maximum: int) -> None:
    shorter = OPERAND_DISTRIBUTIONS[operands].draw(generator(), maximum - 1, DRAWS)
    assert p_value(shorter - 1, OPERAND_DISTRIBUTIONS[operands].probabilities(maximum)) < ACCEPT


@pytest.mark.parametrize("operands", list(OPERAND_DISTRIBUTIONS))
def test_each_operand_keeps_to_its_own_limit(operands: str) -> None:
    limits = np.resize(np.array([1, 2, 5, 40, 1000]), DRAWS)
    drawn = OPERAND_DISTRIBUTIONS[operands].draw(generator(), limits, DRAWS)
    for limit in (1, 2, 5, 40, 1000):
        some = drawn[limits == limit]
        assert some.min() == 1 and some.max() == limit
    alike = OPERAND_DISTRIBUTIONS[operands].draw(generator(), np.full(DRAWS, 50), DRAWS)
    assert p_value(alike - 1, OPERAND_DISTRIBUTIONS[operands].probabilities(50)) > ACCEPT


# Distributions of the GCD

def on(*some: int) -> Probabilities:
    """P(gcd = 1), ..., P(gcd = M), all alike on some integers."""
    return np.asarray(np.isin(np.arange(1, MAXIMUM + 1), some) / len(some))


OUTCOMES: Mapping[str, tuple[dict[str, object], Probabilities]] = {
    "uniform": ({"outcomes": "uniform"}, power_distribution(0)),
    "inverse-sqrt": ({"outcomes": "inverse-sqrt"}, power_distribution(0.5)),
    "log-uniform": ({"outcomes": "log-uniform"}, power_distribution(1)),
    "inverse-1.5": ({"outcomes": "inverse-1.5"}, power_distribution(1.5)),
    "power 2": ({"outcomes": "power", "alpha": 2.0}, power_distribution(2)),
    "power 0.25": ({"outcomes": "power", "alpha": 0.25}, power_distribution(0.25)),
    "power -1": ({"outcomes": "power", "alpha": -1.0}, power_distribution(-1)),
    "uniform, K=200": ({"outcomes": "uniform", "max_gcd": 200}, power_distribution(0, 200)),
    "log-uniform, K=200": ({"outcomes": "log-uniform", "max_gcd": 200}, power_distribution(1, 200)),
    "power 0.7, K=31": ({"outcomes": "power", "alpha": 0.7, "max_gcd": 31}, power_distribution(0.7, 31)),
    "power 0.7, K=31, focus": ({"outcomes": "power", "alpha": 0.7, "max_gcd": 31, "focus": "10,32,64", "focus_share": 0.5},
                               0.5 * power_distribution(0.7, 31) + 0.5 * on(10, 20, 30)),
    "all out of focus": ({"outcomes": "uniform", "max_gcd": 31, "focus": "32,64"}, power_distribution(0, 31)),
    "log-uniform, focus": ({"outcomes": "log-uniform", "focus": "30,47,64", "focus_share": 0.6},
                           0.4 * power_distribution(1) + 0.2 * sum(on(*some) for some in ((30, 60, 90), (47, 94), (64,)))),
}


@pytest.mark.parametrize("operands", list(OPERAND_DISTRIBUTIONS))
@pytest.mark.parametrize("name", OUTCOMES)
def test_chosen_gcds_follow_their_distribution(name: str, operands: str) -> None:
    leaves, probabilities = OUTCOMES[name]
    pairs = distribution(operands=operands, **leaves)
    assert p_value(drawn_gcds(pairs), probabilities) > ACCEPT
    a, b, k = pairs.draw_with_gcd(generator(), 10_000)
    assert np.array_equal(np.gcd(a, b), k)
    assert min(a.min(), b.min()) >= 1 and max(a.max(), b.max()) <= MAXIMUM


@pytest.mark.parametrize(("drawn", "expected"), [
    ("log-uniform", "inverse-sqrt"), ("inverse-sqrt", "log-uniform"), ("uniform", "power 0.25"),
    ("power 2", "inverse-1.5"), ("inverse-1.5", "power 2"), ("uniform", "uniform, K=200"),
    ("log-uniform", "log-uniform, K=200"), ("log-uniform, K=200", "log-uniform"), ("power -1", "uniform"),
    ("log-uniform, focus", "log-uniform"), ("log-uniform", "log-uniform, focus"),
])
def test_wrong_outcomes_are_noticed(drawn: str, expected: str) -> None:
    assert p_value(drawn_gcds(distribution(**OUTCOMES[drawn][0])), OUTCOMES[expected][1]) < ACCEPT


def test_every_named_exponent_is_tested() -> None:
    assert EXPONENTS == {"uniform": 0.0, "inverse-sqrt": 0.5, "log-uniform": 1.0, "inverse-1.5": 1.5}
    assert set(EXPONENTS) <= set(OUTCOMES)


def test_natural_gcds_of_uniform_operands() -> None:
    assert np.allclose(natural_uniform(SMALL), natural_by_sums("uniform"), rtol=1e-9)
    gcds = drawn_gcds(distribution(outcomes="natural"))
    assert p_value(gcds, natural_uniform()) > ACCEPT
    assert p_value(gcds, power_distribution(2, MAXIMUM) * 0.99 + power_distribution(0) * 0.01) < ACCEPT


def test_natural_gcds_of_log_uniform_operands() -> None:
    gcds = drawn_gcds(distribution(SMALL, operands="log-uniform", outcomes="natural"))
    assert p_value(gcds, natural_by_sums("log-uniform")) > ACCEPT
    assert p_value(gcds, natural_by_sums("uniform")) < ACCEPT  # the two differ, whatever the text says


@pytest.mark.parametrize(("share", "wrong_share"), [(0.0, 0.01), (0.05, 0.06), (0.3, 0.33), (1.0, 0.99)])
def test_mixtures_follow_their_distribution(share: float, wrong_share: float) -> None:
    gcds = drawn_gcds(distribution(outcomes="mixture", mixture_share=share))
    assert p_value(gcds, mixed(share, natural_uniform())) > ACCEPT
    assert p_value(gcds, mixed(wrong_share, natural_uniform())) < ACCEPT


def test_mixtures_of_other_operands_and_k() -> None:
    natural = natural_by_sums("log-uniform")
    pairs = distribution(SMALL, operands="log-uniform", outcomes="mixture", mixture_share=0.2, max_gcd=200)
    assert p_value(drawn_gcds(pairs), mixed(0.2, natural, 200)) > ACCEPT
    assert p_value(drawn_gcds(pairs), mixed(0.2, natural, 100)) < ACCEPT


def test_a_mixture_with_a_focus() -> None:
    gcds = drawn_gcds(distribution(outcomes="mixture", mixture_share=0.2, focus="30,47", focus_share=0.6))
    focused = 0.4 * power_distribution(0) + 0.3 * (on(30, 60, 90) + on(47, 94))
    assert p_value(gcds, 0.2 * focused + 0.8 * natural_uniform()) > ACCEPT
    assert p_value(gcds, mixed(0.2, natural_uniform())) < ACCEPT
    assert p_value(gcds, 0.6 * focused + 0.4 * natural_uniform()) < ACCEPT, "the share is of what is drawn first"


def test_defaults_of_the_mixture() -> None:
    pairs = distribution(outcomes="mixture")
    assert isinstance(pairs, Mixture)
    assert (pairs.share, pairs.uniform.max_gcd, DEFAULT_MIXTURE_SHARE) == (0.05, 100, 0.05)
    assert p_value(drawn_gcds(pairs), mixed(0.05, natural_uniform())) > ACCEPT


# The distribution of whole pairs, for an M so small that every pair has its cell

TINY, TINY_K = 30, 10


def joint_distribution(outcomes: str, operands: str) -> Probabilities:
    """P(a, b) at cell (a - 1) M + b - 1: P(k) p_N(a/k) p_N(b/k) / Z_N, N = M div k, over coprime a/k, b/k."""
    joint = np.zeros((TINY, TINY))
    p_k = power_distribution(EXPONENTS[outcomes], TINY_K, TINY)
    for k in range(1, TINY_K + 1):
        N = TINY // k
        p = OPERAND_DISTRIBUTIONS[operands].probabilities(N)
        n = np.arange(1, N + 1)
        weights = np.where(np.gcd.outer(n, n) == 1, np.outer(p, p), 0.0)
        joint[np.ix_(n * k - 1, n * k - 1)] += p_k[k - 1] * weights / weights.sum()
    return joint.ravel()


@pytest.mark.parametrize("operands", list(OPERAND_DISTRIBUTIONS))
@pytest.mark.parametrize("outcomes", list(EXPONENTS))
def test_joint_law_of_pairs(outcomes: str, operands: str) -> None:
    a, b = distribution(TINY, operands=operands, outcomes=outcomes, max_gcd=TINY_K).draw(generator(), DRAWS)
    cells = (a - 1) * TINY + b - 1
    assert p_value(cells, joint_distribution(outcomes, operands)) > ACCEPT
    other = "uniform" if operands == "log-uniform" else "log-uniform"
    assert p_value(cells, joint_distribution(outcomes, other)) < ACCEPT


@pytest.mark.parametrize("operands", list(OPERAND_DISTRIBUTIONS))
def test_joint_law_of_natural_pairs(operands: str) -> None:
    a, b = distribution(TINY, operands=operands, outcomes="natural").draw(generator(), DRAWS)
    p = OPERAND_DISTRIBUTIONS[operands].probabilities(TINY)
    assert p_value((a - 1) * TINY + b - 1, np.outer(p, p).ravel()) > ACCEPT
    assert p_value((a - 1) * TINY + a - 1, np.outer(p, p).ravel()) < ACCEPT  # a and b must be independent


def test_coprime_pairs_and_wide_integers() -> None:
    limits = np.full(2000, 2**40)
    a, b = coprime_pairs(generator(), OPERAND_DISTRIBUTIONS["uniform"], limits)
    assert max(a.max(), b.max()) > 2**31 and (np.gcd(a, b) == 1).all()
    assert np.array_equal(fast_gcd(a * 6, b * 6), np.full(2000, 6))
    ones, _ = coprime_pairs(generator(), OPERAND_DISTRIBUTIONS["log-uniform"], np.ones(100, dtype=np.int64))
    assert (ones == 1).all()
