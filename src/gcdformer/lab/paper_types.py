"""What the API sends of the paper, as types: claims, tables, figures. Only shapes; `paper.py` makes them."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from typing_extensions import TypedDict

from gcdformer.lab.schema import Numbers, doc


class PaperCell(TypedDict):
    row: str
    column: str
    published: str
    ours: str
    difference: float | None
    minutes: float | None
    seeds: int | None
    why: str | None


class CurveColumns(TypedDict):
    """One value per evaluation, in order; empty where the task has no such measure."""

    epoch: list[int]
    examples: list[int]
    loss: Numbers
    accuracy: Numbers
    n_correct: list[int]


class PaperCurve(TypedDict):
    """A run of a figure."""

    run: str
    seed: int
    measured_as: Annotated[str | None, doc("what it has in place of the experiment's distribution or model")]
    columns: CurveColumns
    prime_powers: Annotated[dict[str, int], doc("prime power -> examples after which it first was correct")]


class PaperTable(TypedDict):
    """A table or figure of the paper, with the cells that were measured or computed here."""

    name: str
    label: str
    number: Annotated[str, doc("what the paper calls it: Table 2, Figure 1")]
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
    alike: Annotated[list[dict[str, Any]], doc("predictions of other runs that grokked, in the form of the table")]
    runs: list[str]


class PaperClaim(TypedDict):
    """A claim of the paper, and what the measured runs say of it."""

    name: str
    statement: str
    verdict: Literal["holds", "does not hold", "undecided", "not measured"]
    count: Annotated[str, doc("how often it was as claimed")]
    unit: Annotated[str, doc("what is counted")]
    rule: Annotated[str, doc("when it counts as claimed")]
    evidence: list[str]


class Paper(TypedDict):
    claims: list[PaperClaim]
    tables: list[PaperTable]
