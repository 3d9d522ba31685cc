"""The paper's claims as data, each with the runs that decide it and a verdict from the ledger.

A claim is in our words. Its verdict is read from measured runs and trains nothing: it holds, does not hold, is undecided
(the runs there are do not tell, or no more than chance), or is not measured. Missing experiments are named in any case.
What is looked at in a run is in `observations` and `steps`, which runs are asked in `contrasts`, what makes a comparison
fair in `pairing`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np

from gcdformer.errors import UserError
from gcdformer.numbers.random import Purpose, block_generator
from gcdformer.paper import CLAIM_EPOCHS, CLAIMS
from gcdformer.paper import observations as look
from gcdformer.paper.compare import count_of
from gcdformer.paper.contrasts import LARGE, PAIRS, has_more_digits, is_uniform, tells_of_divisors
from gcdformer.paper.entry import Entry
from gcdformer.paper.ledger import PROBLEM, is_current
from gcdformer.paper.pairing import (
    AT_THE_END,
    Chance,
    Observation,
    Observe,
    over_pairs,
    over_runs,
)
from gcdformer.paper.steps import WITHIN, follow_by_chance, products_follow
from gcdformer.paper.table import Experiment, Table
from gcdformer.paper.tables.base import MIXTURE_30
from gcdformer.paper.tables.benford import batch, benford, inverse
from gcdformer.paper.tables.rational import TASKS, fraction
from gcdformer.paper.tables.scaling import DEPTHS, DIMS, deep, one_layer
from gcdformer.paper.tables.uniform import UNI_10, UNI_1000

MOST = 0.75
"""Share of the times that makes a claim hold: half way between a coin and a rule without exception. A tie counts as one of
the times and is not as claimed, but does not speak against the claim either: where only the ties keep it from that share, it
is undecided."""
FEW = 10
"""Least count where many small things are counted in one run, primes or products: fewer are soon in order by chance."""
PAIRS_NEEDED = 3
"""Least count of pairs of runs, where bases and seeds make several: one pair may be an accident."""
LONGER = 3
"""How many times longer the runs should be if those of the usual budget are all there and do not tell."""
Status = Literal["holds", "does not hold", "undecided", "not measured"]


@dataclass(frozen=True)
class Claim:
    """`unit` is what is counted; `rule` says when it counts as claimed; `experiments` are a small choice that decides it,
    though any others of the ledger count too; fewer than `least` counts without ties decide nothing."""

    name: str
    statement: str
    unit: str
    rule: str
    experiments: tuple[Experiment, ...]
    observe: Observe
    least: int
    chance: Callable[[list[Entry], np.random.Generator], Chance] | None = None
    """How often it would be as claimed by chance, where that is often."""


def for_bases(*makers: Callable[[int], Experiment], bases: Iterable[int] = (10, 30, 1000, 2023)) -> tuple[Experiment, ...]:
    return tuple(make(base) for base in bases for make in makers)


def balanced(base: int) -> Experiment:
    """Uniform operands, log-uniform outcomes."""
    return Experiment(base, outcomes="log-uniform")


def uniform(base: int) -> Experiment:
    """Log-uniform operands, with which primes are grokked soon, and uniform outcomes."""
    return benford(base, outcomes="uniform")


def narrow(base: int) -> Experiment:
    """One layer of 32 dimensions."""
    return one_layer(base, list(DIMS).index(32))


MORE = "more correct GCD after the same examples; as many is a tie"
ALL: dict[str, Claim] = {claim.name: claim for claim in (
    Claim("mixture", "In base 30, a share of 5 % of uniform outcomes among natural ones makes learning faster.",
          "steps", "reached in fewer examples with the mixture, in as many is a tie; numbers of correct GCD that come "
          "together are one step, and those known at the first evaluation do not tell",
          (Experiment(30), MIXTURE_30), over_pairs([(Experiment(30), MIXTURE_30)], look.sooner), least=3),
    Claim("log-operands", "Log-uniform operands teach more GCD than uniform ones.", "pairs of runs", MORE,
          for_bases(Experiment, benford), over_pairs(PAIRS["operands"], look.more_correct), PAIRS_NEEDED),
    Claim("log-outcomes", "Log-uniform outcomes teach more GCD than natural ones.", "pairs of runs", MORE,
          for_bases(Experiment, balanced, benford, inverse), over_pairs(PAIRS["outcomes"], look.more_correct), PAIRS_NEEDED),
    Claim("determinism", "In large bases, once primes are grokked, uniform outcomes end the rule that every GCD has one "
          "prediction.", "pairs of runs",
          f"over {look.SPLIT_GCDS} in 100 more k without a prediction for nine tenths of their pairs than with natural "
          f"outcomes, at the ends of runs whose budgets differ by {AT_THE_END - 1:.0%} at most; a run without a class of a "
          "prime that does not divide the base does not tell",
          for_bases(benford, uniform, bases=(LARGE, 2023, 2401)),
          over_pairs(PAIRS["uniform"], look.more_split, AT_THE_END), PAIRS_NEEDED),
    Claim("model-size", "The size of the model hardly matters.", "pairs of runs",
          f"accuracy within {look.SIZE_POINTS:g} points of the preset's own model after the same examples, where the better "
          f"one gained over always answering 1 more than that, and {look.HALF:.0%} of what the rules gain; a model wider "
          "than the preset's has a learning rate that is lower by as much",
          (*(make(base) for base in (10, 30) for make in (Experiment, narrow)), one_layer(30, list(DIMS).index(128)),
           deep(30, list(DEPTHS).index((6, 6)))), over_pairs(PAIRS["sizes"], look.as_accurate), PAIRS_NEEDED),
    Claim("batch-size", "The batch size hardly matters.", "pairs of runs",
          f"at most {look.BATCH_GCDS} correct GCD between batches of 64 and of 256 after the same examples, where one "
          f"of them has more than {look.ENOUGH_GCDS}",
          tuple(batch(base, column) for base in (30, 1000) for column in range(4)),
          over_pairs(PAIRS["batches"], look.as_many_correct), PAIRS_NEEDED),
    Claim("fractions", "Comparing two fractions is learned, adding them is not.", "pairs of runs",
          f"at least {look.LEARNED:g} % of comparisons right, and at most {look.NOT_LEARNED:g} % of sums",
          tuple(fraction(10, 2 * TASKS.index(task) + power) for power in (0, 1) for task in ("comparison", "addition")),
          over_pairs(PAIRS["tasks"], look.only_comparison), least=2),
    Claim("primes-in-order", "Small primes that do not divide the base are learned roughly in their order.",
          "pairs of primes", "the smaller learned first; in the same evaluation is a tie",
          for_bases(Experiment, benford, bases=(1000, 2023)), over_runs(tells_of_divisors, look.primes_in_order), least=FEW),
    Claim("two-digits", "What is learned early is the divisibility that shows in the last two digits: in base 210 by 4, not "
          "by 8.", "pairs of prime powers", "the larger, which shows in two digits, before the smaller, which does not; in "
          "the same evaluation is a tie",
          for_bases(Experiment, bases=(10, 30, 210)), over_runs(has_more_digits, look.visible_first), least=3),
    Claim("classes", "Under uniform outcomes the classes stay, while the elements that are predicted for them change.",
          "runs", f"{look.STABLE:.0%} of the classes stay from one evaluation to the next, and {look.CHANGING:.0%} of those "
          f"change their prediction; with {look.LEAST_CLASSES} classes or more at the end", (UNI_10, UNI_1000),
          over_runs(is_uniform, look.stable_classes), least=2),
    Claim("steps", "The steps of learning come with a prime power, which brings its products with all that is known.",
          "products", f"learned within {WITHIN} epochs of the last of their prime powers, more often than if the products "
          "of a run exchange their times", for_bases(Experiment, bases=(30, 210)),
          over_runs(tells_of_divisors, products_follow), FEW, follow_by_chance),
)}


def find_claims(names: Iterable[str] | None) -> list[Claim]:
    """Claims by name; all if none is named."""
    wanted = list(ALL) if names is None else list(names)
    for name in wanted:
        if name not in ALL:
            raise UserError(f"only: unknown claim '{name}': the claims are {', '.join(ALL)}")
    return [ALL[name] for name in wanted]


def claims_table(claims: Iterable[Claim]) -> Table:
    """The runs that decide some claims, as a table without cells: they are measured as those of a figure are."""
    needed = dict.fromkeys(one for claim in claims for one in claim.experiments)
    return Table(CLAIMS, CLAIMS, 0, "The claims of the paper", (), curves=tuple(needed))


@dataclass(frozen=True)
class Verdict:
    """What the runs say of a claim."""

    claim: Claim
    observations: tuple[Observation, ...]
    missing: tuple[str, ...]
    """Of the claim's own experiments those without a run in the newest recipe."""
    chance: Chance | None = None

    @property
    def held(self) -> int:
        return sum(one.finding.held for one in self.observations)

    @property
    def of(self) -> int:
        """How often it was looked at, ties included."""
        return sum(one.finding.of for one in self.observations)

    @property
    def ties(self) -> int:
        return sum(one.finding.ties for one in self.observations)

    @property
    def decisive(self) -> int:
        """How many were no ties."""
        return self.of - self.ties

    @property
    def status(self) -> Status:
        if not self.observations:
            return "not measured"
        if self.decisive < self.claim.least:
            return "undecided"
        if self.held < MOST * self.decisive:
            return "does not hold"
        return "undecided" if self.held < MOST * self.of or self.by_chance else "holds"

    @property
    def by_chance(self) -> bool:
        """Whether chance does as well, in more than five shuffles of 100."""
        return self.chance is not None and self.held / self.of <= self.chance.most

    @property
    def told(self) -> str:
        """The count in words, or what is missing."""
        if self.status == "not measured":
            return f"missing: {', '.join(self.missing)}" if self.missing else "the runs there are make no fair pair"
        ties = f", {count_of(self.ties, 'tie')}" if self.ties else ""
        fewer = f", fewer than {self.claim.least}" if self.decisive < self.claim.least else ""
        told = f"{self.held} of {self.of} {self.claim.unit}{ties}{fewer}{' without ties' if ties and fewer else ''}"
        if self.chance is None or not self.of:
            return told
        percent = [f"{100 * share:.0f} %" for share in (self.held / self.of, self.chance.mean, self.chance.most)]
        return f"{told} ({percent[0]}; by chance {percent[1]}, in 95 shuffles of 100 at most {percent[2]})"

    @property
    def command(self) -> str:
        """Measures what is missing; if nothing is, longer runs."""
        longer = "" if self.missing else f" --max-epochs {LONGER * CLAIM_EPOCHS}"
        return f"gcdformer reproduce {CLAIMS} --only {self.claim.name} --run{longer}"

    def to_json(self) -> dict[str, Any]:
        return {"name": self.claim.name, "statement": self.claim.statement, "verdict": self.status, "held": self.held,
                "of": self.of, "ties": self.ties, "least": self.claim.least, "unit": self.claim.unit,
                "rule": self.claim.rule, "told": self.told, "chance": asdict(self.chance) if self.chance else None,
                "evidence": [{"where": one.where, "held": one.finding.held, "of": one.finding.of, "ties": one.finding.ties,
                              "told": one.finding.told, "recipe": one.runs[0].recipe, "current": one.current,
                              "runs": [run.name for run in one.runs]}
                             for one in self.observations],
                "missing": list(self.missing), "command": self.command}


def judge(claim: Claim, entries: Iterable[Entry]) -> Verdict:
    """A verdict from measured runs; older recipes only count where no run of the newest tells anything. A run that was
    recorded for an experiment and is another one decides nothing."""
    known = [entry for entry in entries if not PROBLEM & entry.facts["changed"].keys()]
    found = claim.observe(known)
    if any(one.current and one.finding.decisive for one in found):
        found = [one for one in found if one.current]
    have = {name for entry in known if is_current(entry) for name in entry.experiments}
    missing = tuple(one.name for one in claim.experiments if one.name not in have)
    telling = [run for one in found if one.finding.of for run in one.runs]
    chance = claim.chance(telling, block_generator(0, Purpose.CHECKS, 0)) if claim.chance and telling else None
    return Verdict(claim, tuple(found), missing, chance)


def claim_verdicts(entries: Iterable[Entry], names: Iterable[str] | None = None, *, preset: str | None = None,
                   bases: Iterable[int] | None = None) -> list[dict[str, Any]]:
    """Every claim with its verdict and evidence, as plain data."""
    wanted = None if bases is None else set(bases)
    known = [entry for entry in entries if preset in (None, entry.facts["preset"])
             and (wanted is None or entry.config.task.base in wanted)]
    return [judge(claim, known).to_json() for claim in find_claims(names)]
