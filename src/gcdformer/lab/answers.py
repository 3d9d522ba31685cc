"""What the API answers, as types: they are the schemas of /api/openapi.json, and a notebook can rely on them.

Only shapes; nothing here reads a run. Accuracy is percent; shares are 0..1; an answer that is no integer is null.
"""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from gcdformer.lab.trainings import TrainingOrder

Numbers = list[float | None]
"""One value an evaluation; null where the task has no such measure."""
Pattern = list[list[list[list[float]]]]
"""Attention by layer, head, query and key."""


class Answer(BaseModel):
    """No field is missing, none is there that is not described."""

    model_config = ConfigDict(extra="forbid", strict=True)


class Problem(Answer):
    """Every refusal."""

    error: str = Field(description="one line: which field or file, and what would be right")
    damaged: bool = Field(False, description="whether the run's files are not as gcdformer wrote them")


class About(Answer):
    version: str
    training: bool = Field(description="whether trainings may be started here")
    asking: bool
    cores: int
    folder: str


class DamagedRun(Answer):
    """A run whose files cannot be read."""

    id: str
    name: str
    example: bool
    damaged: str = Field(description="which file, and what is wrong with it")
    changed: float
    live: bool


class Described(Answer):
    """What a run is."""

    id: str
    name: str
    example: bool = Field(description="whether it comes with the package")
    task: str
    base: int
    maximum: int = Field(description="M, the largest operand")
    examples_from: str = Field(description="a file, or the distributions that training examples are drawn from")
    operands: str | None = Field(description="distribution of the operands; null if trained from a file")
    outcomes: str | None = Field(description="distribution of the GCD; null if trained from a file, or of another task")
    family: str
    dim: int
    model: str
    short_model: str
    seed: int
    live: bool = Field(description="whether it is being trained now")


class RunSummary(Described):
    """A run in the list."""

    damaged: None
    changed: float = Field(description="when its files changed last, in seconds since 1970")
    epochs: int
    accuracy: float | None = Field(description="at the last evaluation")
    n_correct: int | None
    examples: int
    seconds: float
    curve_of: Literal["n_correct", "accuracy"]
    curve: list[tuple[int, float]] = Field(description="[epoch, value], some epochs among them the first and the last")


class Runs(Answer):
    runs: list[RunSummary | DamagedRun]


class Columns(Answer):
    """One value an evaluation, in order."""

    epoch: list[int]
    examples: Numbers
    seconds: Numbers
    loss: Numbers
    test_loss: Numbers
    accuracy: Numbers
    stratified_accuracy: Numbers
    n_correct: list[int | None]
    throughput: Numbers


class TimelineStep(Answer):
    """An epoch at which D changed."""

    epoch: int
    entered: list[int]
    left: list[int]
    causes: dict[str, list[int]] = Field(description="prime power -> the k that it brought")
    text: str


class TimelineOfD(Answer):
    steps: list[TimelineStep]
    prime_powers: dict[str, int] = Field(description="prime power -> the epoch at which it first was correct")
    stagnation: list[tuple[int, int]] = Field(description="first and last epoch of long periods without change")


class RunDetails(Described):
    """A run, every evaluation in short. The last three are only there if `has_gcd`."""

    has_gcd: bool
    threshold: float
    test_size: int
    best_epoch: int | None
    columns: Columns
    checkpoints: list[int] = Field(description="epochs whose model can be asked")
    base_primes: list[int]
    repeat: str = Field(description="the command that trains it again")
    config: str = Field(description="config.toml")
    D: list[list[int]] | None = Field(None, description="by evaluation")
    nearly: list[list[int]] | None = Field(None, description="by evaluation, the k with f(k) = k that are not correct; "
                                           "which k are being learned is said by the explanation of an epoch")
    timeline: TimelineOfD | None = None


class OneK(Answer):
    """What the model does with the pairs whose GCD is k."""

    k: int
    kind: Literal["correct", "learning", "broken", "rule"]
    prediction: int | None = Field(description="f(k), the most frequent answer")
    share: float = Field(description="how frequent it is")
    rule: int | None = Field(description="what the rules say")
    label: int = Field(description="the element of D (or E) that decides")
    factors: list[int]
    values: list[tuple[int | None, float]] = Field(description="[answer, share], most frequent first")


class ClassOfK(Answer):
    label: int
    members: list[int]
    prediction: int | None
    share: float
    values: int
    entropy: float


class LearnedPrime(Answer):
    prime: int
    powers: list[int]


class PrimePower(Answer):
    value: int
    right: float
    state: Literal["correct", "learning", "unknown"]


class PrimeRow(Answer):
    prime: int
    divides_base: bool
    powers: list[PrimePower]


class ExceptionToRule(Answer):
    k: int
    text: str


class RuleView(Answer):
    says: str
    holds: bool
    mark: Literal["yes", "wait", "no", "none"] = Field(description="wait: holds but for k being learned; none: not judged")
    share: float
    exceptions: list[ExceptionToRule]


class FidelityView(Answer):
    value: float
    low: float
    high: float
    n: int


class Accuracy(Answer):
    measured: float
    predicted: float = Field(description="if D were all the model knows; exact")


class Counterexample(Answer):
    a: int
    b: int
    gcd: int
    prediction: int | None
    rule: int | None
    set: str


class EpochDetails(Answer):
    """One epoch: what the model answers, and the rules."""

    epoch: int
    form: Literal["R", "G", "U", "none"]
    form_says: str
    why: str
    certified: bool
    verdict: str
    D: list[int]
    being_learned: list[int]
    grokked: list[int]
    E: list[int] | None
    classes: list[ClassOfK] | None
    sets: list[LearnedPrime] | None = Field(description="D as a product of these sets, if it is one")
    prime_powers: list[PrimeRow]
    f: list[OneK]
    cells: list[tuple[int, int, float]] = Field(description="[true k, predicted, share]; 101 for larger and unreadable ones")
    rules: list[RuleView]
    fidelity: dict[str, FidelityView]
    accuracy: Accuracy
    counterexamples: list[Counterexample]
    examples: dict[str, tuple[int, int]] = Field(description="k -> a pair that got the usual answer")


class Likely(Answer):
    word: str
    p: float


class DecoderStep(Answer):
    chosen: str
    likely: list[Likely] = Field(description="the likeliest tokens, best first")


class Attention(Answer):
    encoder: Pattern
    decoder: Pattern
    cross: Pattern


class Asked(Answer):
    """A question to a model, and all that is shown of its answer."""

    run: str
    epoch: int
    a: int
    b: int
    base: int
    prediction: int | None
    truth: int
    right: bool
    rule: int | None
    reason: str
    input: list[str]
    output: list[str]
    value_of: str | None
    steps: list[DecoderStep]
    attention: Attention | None = Field(description="null for recurrent models")


class Surprise(Answer):
    epoch: int
    a: int | None
    b: int | None
    known: int = Field(description="how many such pairs are known")


class PaperCell(Answer):
    row: str
    column: str
    published: str
    ours: str
    difference: float | None
    minutes: float | None
    seeds: int | None
    why: str | None


class CurveColumns(Answer):
    """One value an evaluation, in order; empty where the task has no such measure."""

    epoch: list[int]
    examples: list[int]
    loss: Numbers
    accuracy: Numbers
    n_correct: list[int]


class PaperCurve(Answer):
    """A run of a figure."""

    run: str
    seed: int
    measured_as: str | None = Field(description="what it has in place of the experiment's distribution or model")
    columns: CurveColumns
    prime_powers: dict[str, int] = Field(description="prime power -> examples after which it first was correct")


class PaperTable(Answer):
    """A table or figure of the paper, with the cells that were measured or computed here."""

    name: str
    label: str
    number: str = Field(description="what the paper calls it: Table 2, Figure 1")
    title: str
    best_of: int
    epochs: int | None
    note: dict[str, str] | None
    rows: list[str]
    columns: list[str]
    cells: list[PaperCell]
    published: int
    measured: int
    curves: list[PaperCurve]
    alike: list[dict[str, Any]] = Field(description="predictions of other runs that grokked, in the form of the table")
    runs: list[str]


class PaperClaim(Answer):
    """A claim of the paper, and what the measured runs say of it."""

    name: str
    statement: str
    verdict: Literal["holds", "does not hold", "undecided", "not measured"]
    count: str = Field(description="how often it was as claimed")
    unit: str = Field(description="what is counted")
    rule: str = Field(description="when it counts as claimed")
    evidence: list[str]


class Paper(Answer):
    claims: list[PaperClaim]
    tables: list[PaperTable]


class StartedTraining(TrainingOrder):
    """A training started here: what was ordered, and how it stands."""

    id: str
    running: bool
    exit_code: int | None
    stopped: bool = Field(description="stopped from here, and saved")
    error: str | None


class TrainingList(Answer):
    trainings: list[StartedTraining]
