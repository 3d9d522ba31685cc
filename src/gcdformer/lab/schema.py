"""What the API sends, as types: they are the schemas of /api/openapi.json, and a notebook can rely on them.

Only shapes; nothing here reads a run. The JSON of a class, a fidelity, a step and a pair is defined beside them, in
`explanation/`. Accuracy is percent; shares are 0..1; a prediction that is no integer is null.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, NotRequired

from pydantic import Field
from typing_extensions import TypedDict

from gcdformer.display.cells import Kind
from gcdformer.display.words import Mark
from gcdformer.explanation.classes import ClassOfK
from gcdformer.explanation.forms import FORMS
from gcdformer.explanation.mistakes import CounterexampleView
from gcdformer.explanation.statistics import FidelityView
from gcdformer.explanation.timeline import TimelineStep

Numbers = list[float | None]
"""One value per evaluation; null where the task has no such measure."""


def doc(text: str) -> Any:
    """What a field means."""
    return Field(description=text)


class Problem(TypedDict):
    """Every refusal."""

    error: Annotated[str, doc("one line: which field or file, and what would be right")]
    damaged: NotRequired[Annotated[bool, doc("whether the run's files are not as gcdformer wrote them")]]


class About(TypedDict):
    version: str
    training: Annotated[bool, doc("whether trainings may be started here")]
    asking: bool
    cores: NotRequired[int]
    folder: str


class Description(TypedDict):
    """What a run is."""

    task: str
    base: int
    maximum: Annotated[int, doc("M, the largest operand")]
    examples_from: Annotated[str, doc("a file, or the distributions that training examples are drawn from")]
    operands: Annotated[str | None, doc("distribution of the operands; null if trained from a file")]
    outcomes: Annotated[str | None, doc("distribution of the GCD; null if trained from a file, or of another task")]
    family: str
    dim: int
    model: str
    short_model: str
    seed: int


class Progress(TypedDict):
    """How far a run has come."""

    epochs: int
    accuracy: Annotated[float | None, doc("at the last evaluation")]
    n_correct: int | None
    examples: int
    seconds: float
    curve_of: Literal["n_correct", "accuracy"]
    curve: Annotated[list[tuple[int, float]], doc("[epoch, value], some epochs among them the first and the last")]


class Named(TypedDict):
    id: str
    name: str
    example: Annotated[bool, doc("whether it comes with the package")]


class DamagedRun(Named):
    """A run whose files cannot be read."""

    damaged: Annotated[str, doc("which file, and what is wrong with it")]
    changed: float
    live: bool


class RunSummary(Named, Description, Progress):
    """A run in the list."""

    damaged: None
    changed: Annotated[float, doc("when its files changed last, in seconds since 1970")]
    live: Annotated[bool, doc("whether it is being trained now")]


class Runs(TypedDict):
    runs: list[RunSummary | DamagedRun]


class Columns(TypedDict):
    """One value per evaluation, in order."""

    epoch: list[int]
    examples: Numbers
    seconds: Numbers
    loss: Numbers
    test_loss: Numbers
    accuracy: Numbers
    stratified_accuracy: Numbers
    n_correct: list[int | None]
    throughput: Numbers


class TimelineOfD(TypedDict):
    steps: list[TimelineStep]
    prime_powers: Annotated[dict[str, int], doc("prime power -> the epoch at which it first was correct")]
    stagnation: Annotated[list[tuple[int, int]], doc("first and last epoch of long periods without change")]


class OfferedPrior(TypedDict):
    name: str
    says: str


class Priors(TypedDict):
    """The decision priors that a run's epochs can be shown under."""

    own: Annotated[str, doc("under which the run was evaluated")]
    offered: Annotated[list[OfferedPrior], doc("its own among them")]
    refusal: Annotated[str | None, doc("why only its own is offered")]


class RunView(Named, Description):
    """A run, every evaluation in short. The last three are only there if `has_gcd`."""

    has_gcd: bool
    threshold: float
    test_size: int
    best_epoch: int | None
    columns: Columns
    checkpoints: Annotated[list[int], doc("epochs whose model can be asked")]
    priors: Priors
    base_primes: list[int]
    repeat: Annotated[str, doc("the command that trains it again")]
    config: Annotated[str, doc("config.toml")]
    D: NotRequired[Annotated[list[list[int]], doc("by evaluation")]]
    nearly: NotRequired[Annotated[list[list[int]], doc("by evaluation, the k that are being learned")]]
    timeline: NotRequired[TimelineOfD]


class RunDetails(RunView):
    live: Annotated[bool, doc("whether it is being trained now")]


class OneK(TypedDict):
    """What the model does with the pairs whose GCD is k."""

    k: int
    kind: Kind
    prediction: Annotated[int | None, doc("f(k), the most frequent prediction")]
    share: Annotated[float, doc("how frequent it is")]
    right: Annotated[float, doc("how frequent k is")]
    rule: Annotated[int | None, doc("what the rules say")]
    label: Annotated[int, doc("the element of D (or E) that decides")]
    factors: list[int]
    values: Annotated[list[tuple[int | None, float]], doc("[prediction, share], most frequent first")]


class LearnedPrime(TypedDict):
    prime: int
    powers: list[int]


class PrimePower(TypedDict):
    value: int
    right: float
    state: Literal["correct", "learning", "unknown"]


class PrimeRow(TypedDict):
    prime: int
    divides_base: bool
    powers: list[PrimePower]


class ExceptionToRule(TypedDict):
    k: int
    text: str


class RuleView(TypedDict):
    says: str
    holds: bool
    mark: Annotated[Mark, doc("wait: holds but for k being learned; none: not judged")]
    share: float
    exceptions: list[ExceptionToRule]


class Accuracy(TypedDict):
    measured: float
    predicted: Annotated[float, doc("if the rules were followed exactly")]


class EpochDetails(TypedDict):
    """One epoch: what the model predicts, and the rules."""

    epoch: int
    prior: Annotated[str, doc("under which the answers were decided")]
    form: Annotated[str, doc(f"the letter of the form of rules: {', '.join(map(str, FORMS))}")]
    form_says: str
    why: str
    certified: bool
    verdict: str
    D: list[int]
    being_learned: list[int]
    grokked: list[int]
    E: Annotated[list[int] | None, doc("the labels that the rules are about, if they are not D")]
    classes: list[ClassOfK] | None
    sets: Annotated[list[LearnedPrime] | None, doc("D as a product of these sets, if it is one")]
    prime_powers: list[PrimeRow]
    f: list[OneK]
    cells: Annotated[list[tuple[int, int, float]], doc("[true k, predicted, share]; 101 for larger and unreadable ones")]
    rules: list[RuleView]
    fidelity: dict[str, FidelityView]
    accuracy: Accuracy
    counterexamples: list[CounterexampleView]
    examples: Annotated[dict[str, tuple[int, int]], doc("k -> a pair that got the usual prediction")]
