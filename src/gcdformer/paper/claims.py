"""The paper's claims as data, each with the runs that decide it and a verdict from the ledger.

A claim is in our words. Its verdict is read from measured runs and trains nothing: it holds, does not hold, is undecided
(the runs there are decide nothing, or no more than chance), or is not measured. Missing experiments are named in any case.
What is looked at in a run is in `observations`, what makes a comparison fair in `evidence`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Literal

import numpy as np

from gcdformer.errors import UserError
from gcdformer.numbers.random import Purpose, block_generator
from gcdformer.numbers.theory import prime_factors
from gcdformer.paper import CLAIM_EPOCHS, CLAIMS, TABLES, experiments
from gcdformer.paper import observations as look
from gcdformer.paper.entry import Entry
from gcdformer.paper.evidence import AT_THE_END, Chance, Contrast, Observation, Observe, over_pairs, over_runs
from gcdformer.paper.ledger import PROBLEM
from gcdformer.paper.priors import LEAST_FIDELITY, POINTS, rules_under_priors, was_asked
from gcdformer.paper.table import Experiment, Json, Table
from gcdformer.paper.tables.base import MIXTURE_30
from gcdformer.paper.tables.benford import batch, benford, inverse
from gcdformer.paper.tables.rational import TASKS, fraction
from gcdformer.paper.tables.scaling import DEPTHS, DIMS, deep, one_layer
from gcdformer.paper.tables.uniform import UNI_10, UNI_1000
from gcdformer.paper.text import count_of

LARGE = 1000
"""Least base for which the paper says that uniform outcomes end determinism; in base 10 predictions stay mostly single."""
MOST = 0.75
"""Share of the times that makes a claim hold: half way between a coin and a rule without exception. A tie counts as one of
the times and is not as claimed, but does not speak against the claim either: where only the ties keep it from that share, it
is undecided."""
FEW = 10
"""Least count where many small things are counted in one run, primes or products: fewer are soon in order by chance."""
PAIRS_NEEDED = 3
"""Least count of pairs of runs, where bases and seeds make several: one pair may be an accident."""
LONGER = 3
"""How many times longer the runs should be if those of the usual budget are all there and decide nothing."""
Status = Literal["holds", "does not hold", "undecided", "not measured"]


def contrasts() -> dict[str, list[Contrast]]:
    """The pairs of experiments that differ in one thing, by that thing; the second is the one that a claim is about."""
    known = list(experiments().values())
    plain = [run for run in known if run.task == "gcd" and not run.model and not run.batch_size]
    sizes = [run for name in ("small_dims", "deep_models") for run in TABLES[name].experiments() if run.model]
    return {
        "operands": [(replace(run, operands="uniform"), run) for run in plain
                     if run.operands == "log-uniform" and run.outcomes in ("natural", "log-uniform")],
        "outcomes": [(replace(run, outcomes="natural"), run) for run in plain
                     if run.outcomes == "log-uniform" and run.max_gcd is None],
        "uniform": [(replace(run, outcomes="natural"), run) for run in plain
                    if run.outcomes == "uniform" and run.base >= LARGE],
        "sizes": [(run.natural, run) for run in dict.fromkeys(sizes)],
        "batches": [(replace(run, batch_size=256), run) for run in known if run.batch_size == 64],
        "tasks": [(replace(run, task="addition"), run) for run in known if run.task == "comparison"],
    }


def has_divisors(entry: Entry) -> bool:
    """Any run of the gcd but for uniform outcomes, under which the correct GCD come and go."""
    return entry.config.task.task == "gcd" and entry.config.data.outcomes != "uniform"


def has_more_digits(entry: Entry) -> bool:
    """Runs in bases of several primes in which operands have more than two digits, so that the last two do not show all."""
    task = entry.config.task
    return has_divisors(entry) and len(prime_factors(task.base)) > 1 and task.base**2 < task.maximum


def is_classical(entry: Entry) -> bool:
    """The distributions for which the paper states its rules."""
    return has_divisors(entry) and (entry.config.data.operands, entry.config.data.outcomes) == ("uniform", "natural")


def is_uniform(entry: Entry) -> bool:
    return entry.config.task.task == "gcd" and entry.config.data.outcomes == "uniform"


PAIRS = contrasts()


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
    under_priors: bool = False
    """Whether its runs have to be asked under other priors too; one that was not is missing."""

    def counts(self, entry: Entry) -> bool:
        """Whether a run has what this claim looks at."""
        return not self.under_priors or was_asked(entry)


def for_bases(*makers: Callable[[int], Experiment], bases: Iterable[int] = (10, 30, 1000, 2023)) -> tuple[Experiment, ...]:
    return tuple(make(base) for base in bases for make in makers)


balanced = partial(Experiment, outcomes="log-uniform")
uniform = partial(benford, outcomes="uniform")
"""With log-uniform operands, with which primes are grokked soon."""
narrow = partial(one_layer, column=list(DIMS).index(32))
MORE = "more correct GCD after the same examples; as many is a tie"
ALL: dict[str, Claim] = {claim.name: claim for claim in (
    Claim("rules", "With uniform operands and natural outcomes every GCD has one prediction: the largest that divides it "
          "among the products of learned powers of primes, those of the base and grokked ones.", "runs",
          f"each of the three rules is broken by {look.RULE_BREAKS} of 100 k at most, and they predict "
          f"{look.RULE_FIDELITY:.0%} of the stratified pairs; a run that knows the divisor 1 only does not tell",
          for_bases(Experiment), over_runs(is_classical, look.follows_rules), least=FEW),
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
          for_bases(Experiment, benford, bases=(1000, 2023)), over_runs(has_divisors, look.primes_in_order), least=FEW),
    Claim("two-digits", "What is learned early is the divisibility that shows in the last two digits: in base 210 by 4, not "
          "by 8.", "pairs of prime powers", "the larger, which shows in two digits, before the smaller, which does not; in "
          "the same evaluation is a tie",
          for_bases(Experiment, bases=(10, 30, 210)), over_runs(has_more_digits, look.visible_first), least=3),
    Claim("classes", "Under uniform outcomes the classes stay, while the elements that are predicted for them change.",
          "runs", f"{look.STABLE:.0%} of the classes stay from one evaluation to the next, and {look.CHANGING:.0%} of those "
          f"change their prediction; with {look.LEAST_CLASSES} classes or more at the end", (UNI_10, UNI_1000),
          over_runs(is_uniform, look.stable_classes), least=2),
    Claim("steps", "The steps of learning come with a prime power, which brings its products with all that is known.",
          "products", f"learned within {look.WITHIN} epochs of the last of their prime powers, more often than if the "
          "products of a run exchange their times", for_bases(Experiment, bases=(30, 210)),
          over_runs(has_divisors, look.products_follow), FEW, look.follow_by_chance),
    Claim("prior", "A claim of ours: uniform outcomes break the rules only as long as the answer is chosen under the "
          "uniform prior.", "runs", f"asked under the natural prior, the same weights follow a form of rules, which "
          f"predicts {LEAST_FIDELITY:.0%} of natural pairs and implies their accuracy within {POINTS:g} point; under the "
          "training prior those of uniform outcomes do not, and all others, the control, do",
          (UNI_10, UNI_1000, *map(uniform, (LARGE, 2023, 2401)), *map(inverse, (10, LARGE, 2023)), Experiment(10),
           benford(LARGE)), over_runs(was_asked, rules_under_priors), least=8, under_priors=True),
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
    needed = dict.fromkeys(experiment for claim in claims for experiment in claim.experiments)
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
        return sum(observation.finding.held for observation in self.observations)

    @property
    def of(self) -> int:
        """How often it was looked at, ties included."""
        return sum(observation.finding.of for observation in self.observations)

    @property
    def ties(self) -> int:
        return sum(observation.finding.ties for observation in self.observations)

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
    def summary(self) -> str:
        """The count in words, or what is missing."""
        if self.status == "not measured":
            return f"missing: {', '.join(self.missing)}" if self.missing else "the runs there are make no fair pair"
        ties = f", {count_of(self.ties, 'tie')}" if self.ties else ""
        fewer = f", fewer than {self.claim.least}" if self.decisive < self.claim.least else ""
        text = f"{self.held} of {self.of} {self.claim.unit}{ties}{fewer}{' without ties' if ties and fewer else ''}"
        if self.chance is None or not self.of:
            return text
        percent = [f"{100 * share:.0f} %" for share in (self.held / self.of, self.chance.mean, self.chance.most)]
        return f"{text} ({percent[0]}; by chance {percent[1]}, in 95 shuffles of 100 at most {percent[2]})"

    @property
    def command(self) -> str:
        """Measures what is missing; if nothing is, longer runs."""
        longer = "" if self.missing else f" --max-epochs {LONGER * CLAIM_EPOCHS}"
        return f"gcdformer reproduce {CLAIMS} --only {self.claim.name} --run{longer}"

    def to_json(self) -> Json:
        return {"name": self.claim.name, "statement": self.claim.statement, "verdict": self.status, "held": self.held,
                "of": self.of, "ties": self.ties, "least": self.claim.least, "unit": self.claim.unit,
                "rule": self.claim.rule, "text": self.summary, "chance": asdict(self.chance) if self.chance else None,
                "evidence": [observation.to_json() for observation in self.observations],
                "missing": list(self.missing), "command": self.command}


def judge(claim: Claim, entries: Iterable[Entry]) -> Verdict:
    """A verdict from measured runs; older recipes only count where no run of the newest decides anything. A run that was
    recorded for an experiment and is another one decides nothing."""
    known = [entry for entry in entries if not PROBLEM & entry.changed.keys()]
    observations = claim.observe(known)
    if any(observation.current and observation.finding.decisive for observation in observations):
        observations = [observation for observation in observations if observation.current]
    have = {name for entry in known if entry.is_current and claim.counts(entry) for name in entry.experiments}
    missing = tuple(experiment.name for experiment in claim.experiments if experiment.name not in have)
    counted = [run for observation in observations if observation.finding.of for run in observation.runs]
    chance = claim.chance(counted, block_generator(0, Purpose.CHECKS, 0)) if claim.chance and counted else None
    return Verdict(claim, tuple(observations), missing, chance)


def claim_verdicts(entries: Iterable[Entry], claims: Iterable[Claim] = tuple(ALL.values()), *, preset: str | None = None,
                   bases: Iterable[int] | None = None) -> list[Verdict]:
    """Each claim with its verdict and evidence."""
    wanted = None if bases is None else set(bases)
    known = [entry for entry in entries if preset in (None, entry.preset)
             and (wanted is None or entry.config.task.base in wanted)]
    return [judge(claim, known) for claim in claims]
