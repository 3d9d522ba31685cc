"""The paper's tables as data: their shape, their ranges, what must agree between them, and that every run can be built."""

from __future__ import annotations

import ast
from math import prod
from pathlib import Path

import pytest

from conftest import ROOT
from gcdformer.data import Problem
from gcdformer.errors import UserError
from gcdformer.explanation.sieve import largest_divisor, products
from gcdformer.models import count_parameters
from gcdformer.numbers import theory
from gcdformer.paper import SECTIONS, TABLES, Cell, Table, experiments, find_table
from gcdformer.paper.measure import compute, parameters
from gcdformer.paper.tables.base import BASE_GCD
from gcdformer.paper.tables.grokking import GROKKED
from gcdformer.paper.tables.uniform import UNI10_CLASSES
from gcdformer.presets import preset

PACKAGE = ROOT / "src" / "gcdformer"
# each imports only from those before it: table -> run -> ledger -> comparison -> claims -> page; then what makes runs
ORDER = ["table", "tables", "__init__", "text", "entry", "ledger", "measure", "comparison", "evidence", "observations",
         "priors", "claims", "page", "terminal", "record", "reproduce"]
# rows, columns, published cells, as counted in the paper
SHAPES = {
    "encodings": (4, 2, 8), "base_gcd": (20, 2, 40), "theory": (20, 3, 60), "base_pred": (36, 4, 144),
    "base_pred_det": (63, 12, 756), "base_pred_det2": (37, 12, 444), "grokking_det": (17, 8, 17 + 17 + 40),
    "grokking_inverse": (36, 3, 108), "grokked_3": (50, 1, 50), "grokking_uni5": (17, 4, 68), "benford": (36, 2, 72),
    "benford_inverse": (36, 2, 72), "ablation_outcome_dist": (17, 5, 85), "ablation_batch64": (11, 4, 44),
    "pred_uni10": (20, 14, 280), "pred_uni1000_400": (5, 47, 47), "uniforms": (12, 2, 24), "fractions": (4, 10, 40),
    "small_dims": (13, 6, 78), "deep_models": (13, 12, 153), "lstm1": (10, 4, 40), "lstm2": (10, 4, 40),
    "lstm3": (10, 4, 40),
}
FIGURES = {"learning_curves", "mix", "grok_loss", "logu_loss_natural", "logu_loss_inverse", "uniacc", "uniacc1000"}
PERCENT = ("accuracy", "frequency", "share", "theory")


def value(table: str, row: object, column: str) -> object:
    found = [cell.published for cell in TABLES[table].cells if (cell.row, cell.column) == (str(row), column)]
    assert len(found) == 1, (table, row, column)
    return found[0]


def column(table: str, name: str) -> dict[str, object]:
    return {cell.row: cell.published for cell in TABLES[table].cells if cell.column == name}


def test_every_table_and_figure_is_there() -> None:
    assert set(SHAPES) | FIGURES == set(TABLES)
    assert find_table("tab:base_gcd") is TABLES["base_gcd"]
    assert list(TABLES)[:3] == ["encodings", "base_gcd", "base_pred"] and list(TABLES)[-1] == "logu_loss_inverse"
    with pytest.raises(UserError, match="label of logu_loss_natural and of logu_loss_inverse"):
        find_table("fig:logu_loss")
    with pytest.raises(UserError, match="unknown table 'base_gdc'"):
        find_table("base_gdc")


# labels of the captions in the order of the paper's source: LaTeX numbers tables and figures so, through the appendix
CAPTIONS = [
    "encodings", "base_gcd", "base_pred", "grokking_det", "grokking_inverse", "benford", "benford_inverse", "pred_uni10",
    "fractions", "small_dims", "deep_models", "theory", "ablation_outcome_dist", "ablation_batch64", "pred_uni1000_400",
    "uniforms", "lstm1", "lstm2", "lstm3", "grokked_3", "grokking_uni5", "base_pred_det", "base_pred_det2"]
FIGURE_CAPTIONS = ["learning_curves", "mix", "uniacc", "uniacc1000", "grok_loss", "logu_loss_natural", "logu_loss_inverse"]


def test_tables_have_the_numbers_of_the_paper() -> None:
    assert [table.name for table in TABLES.values()] == CAPTIONS + FIGURE_CAPTIONS
    assert [table.in_paper for table in TABLES.values()] == [
        *(f"Table {number}" for number in range(1, 24)), *(f"Figure {number}" for number in range(1, 8))]
    for table in TABLES.values():
        assert find_table(table.in_paper) is find_table(table.in_paper.lower().replace(" ", "-")) is table


@pytest.mark.parametrize(("word", "name"), [
    ("2", "base_gcd"), ("02", "base_gcd"), (" 2 ", "base_gcd"), ("TABLE 2", "base_gcd"), ("tab. 2", "base_gcd"),
    ("table2", "base_gcd"), ("tab:2", "base_gcd"), ("fig:1", "learning_curves"), ("Fig. 7", "logu_loss_inverse")])
def test_a_number_is_a_name(word: str, name: str) -> None:
    assert find_table(word).name == name


@pytest.mark.parametrize("word", ["0", "24", "Table 24", "figure-8", "fig 0"])
def test_a_number_that_the_paper_lacks(word: str) -> None:
    with pytest.raises(UserError, match="the paper has no .*: it has Table 1 to 23 and Figure 1 to 7"):
        find_table(word)
    with pytest.raises(UserError, match="unknown table"):
        find_table("9" * 5000)


@pytest.mark.parametrize("name", ["README.md", "docs/index.md", "CITATION.cff"])
def test_the_paper_is_cited(name: str) -> None:
    text = (ROOT / name).read_text()
    assert "Learning the greatest common divisor: explaining transformer predictions" in text and "Charton" in text
    assert "https://arxiv.org/abs/2308.15594" in text and "https://openreview.net/forum?id=cmcD05NPKa" in text
    assert ("@inproceedings{" in text) == name.endswith(".md")


@pytest.mark.parametrize("name", SHAPES)
def test_shape(name: str) -> None:
    table = TABLES[name]
    assert (len(table.rows), len(table.columns), len(table.published)) == SHAPES[name]
    assert len({(cell.row, cell.column) for cell in table.cells}) == len(table.cells)


@pytest.mark.parametrize("table", TABLES.values(), ids=lambda table: table.name)
def test_values_are_in_range(table: Table) -> None:
    for cell in table.published:
        assert_in_range(cell)


def assert_in_range(cell: Cell) -> None:
    kind, published = cell.measure.kind, cell.published
    if kind in PERCENT:
        assert isinstance(published, int | float)
        assert 0 <= published <= 100 or cell.note is not None, cell
    elif kind == "correct":
        assert isinstance(published, int) and 1 <= published <= 100, cell
    elif kind == "prediction":
        assert all(1 <= f <= 100 for f in (published if isinstance(published, tuple) else [published])), cell
    elif kind in ("epoch-learned", "epochs", "reached"):
        assert isinstance(published, int) and 0 <= published <= 1400, cell
    elif kind in ("divisors", "new-prime-powers"):
        assert isinstance(published, tuple) and all(len(theory.prime_factors(q)) == 1 for q in published), cell
        if kind == "divisors":
            assert all(cell.experiment.base % p == 0 for q in published for p in theory.prime_factors(q)), cell


def test_tables_that_repeat_others_agree() -> None:
    for base, (correct, accuracy, _) in BASE_GCD.items():
        assert value("theory", base, "correct GCD") == value("base_gcd", base, "correct GCD") == correct
        assert value("theory", base, "accuracy") == value("base_gcd", base, "accuracy") == accuracy
    for row, accuracy in list(column("small_dims", "4 layers of 512").items())[1:]:
        assert accuracy == BASE_GCD[int(row)][1]
    for table, natural, balanced in (("ablation_outcome_dist", "1/k^2", "1/k, k <= 100"),
                                     ("ablation_batch64", "natural, batch 256", "log-uniform outcomes, batch 256")):
        for row in TABLES[table].rows:
            assert value(table, row, natural) == value("benford", row, "correct GCD")
            assert value(table, row, balanced) == value("benford_inverse", row, "correct GCD")
    counts = column("grokking_inverse", "natural")
    assert all(counts[base] == count for base, count in column("grokking_uni5", "natural").items())


def test_budgets_are_as_published() -> None:
    batches = TABLES["ablation_batch64"]
    assert {(cell.column[-8:], batches.epochs_of(cell)) for cell in batches.cells} == {("batch 64", 800), ("atch 256", 1300)}
    reached = TABLES["mix"].cells[0]
    assert TABLES["mix"].epochs_of(reached) == reached.published == 30
    assert TABLES["pred_uni10"].best_of == 1 and TABLES["uniacc"].best_of == 3
    bases = [base for base, *_ in GROKKED]
    assert (len(bases), len(set(bases))) == (17, 16), "one base has two rows"


def differences(pairs: list[tuple[str, object, object]]) -> set[str]:
    return {name for name, one, other in pairs if one != other}


def test_disagreements_are_the_known_ones_and_have_a_reason() -> None:
    natural = column("grokking_inverse", "natural")
    base = [(row, value("base_gcd", row, "correct GCD"), natural[row]) for row in map(str, BASE_GCD) if row in natural]
    assert differences(base) == {"30", "1000"}
    large = [(str(b), correct, natural[str(b)]) for b, correct, _, _ in GROKKED if (b, correct) != (2401, 10)]
    assert differences(large) == {"2744", "4000"}
    closed = [(str(b), correct, len(closure(divisors, epochs))) for b, correct, divisors, epochs in GROKKED]
    assert differences(closed) == {"2021", "2744", "5000"}
    noted = {(table.name, cell.row) for table in TABLES.values() for cell in table.cells if cell.note}
    assert {("grokking_det", row) for row in ("2021", "2744", "4000", "5000")} <= noted
    assert {("grokking_inverse", row) for row in ("30", "1000", "2744", "4000")} <= noted
    assert {("base_gcd", "30"), ("base_gcd", "1000"), ("uniforms", "1000"), ("deep_models", "12"),
            ("small_dims", "parameters (millions)"), ("pred_uni10", "6"), ("theory", "15")} <= noted
    assert all(cell.note for cell in TABLES["ablation_outcome_dist"].cells if cell.column == "1/k^1.5")


def closure(divisors: tuple[int, ...], epochs: dict[int, int]) -> set[int]:
    powers = [*divisors, *epochs]
    highest = {p: max(q for q in powers if q % p == 0) for q in powers for p in theory.prime_factors(q)}
    return products(highest, 100)


def test_predictions_follow_the_three_rules() -> None:
    """f(k) is the largest correct value that divides k, in all six bases and in the grokked model of base 1000."""
    cells = TABLES["base_pred_det"].cells + TABLES["base_pred_det2"].cells
    for base, expected in {2: 7, 4: 7, 10: 13, 30: 25, 31: 2, 420: 38}.items():
        f = {int(cell.row): cell.published for cell in cells if cell.column == f"base {base}"}
        correct = {k for k, prediction in f.items() if prediction == k}
        assert list(f) == list(range(1, 101)) and len(correct) == expected
        assert all(f[k] == largest_divisor(correct, k) for k in f)
        assert all(base % p == 0 for k in correct for p in theory.prime_factors(k))
    grokked = {int(row): f for row, f in column("grokked_3", "prediction").items()}
    known = {k for k, f in grokked.items() if f == k}
    assert grokked.pop(32) == (16, 32) and all(f == largest_divisor(known, k) for k, f in grokked.items())
    short = {(cell.row, cell.column): cell.published for cell in TABLES["base_pred"].cells}
    long = {(cell.row, cell.column): cell.published for cell in cells}
    assert all(long[place] == published for place, published in short.items())


def test_uniform_outcomes_show_classes() -> None:
    """In every epoch published, the odd k that 5 does not divide have one prediction, a member of their class."""
    for name in TABLES["pred_uni10"].columns:
        if name.endswith("%"):
            continue
        f = {int(row): prediction for row, prediction in column("pred_uni10", name).items()}
        assert len({f[k] for k in (1, 3, 7, 9, 11, 13, 17, 19)}) == 1 and len({f[k] for k in (2, 6, 14, 18)}) == 1
        assert f[1] % 2 == 1 and f[1] % 5 and f[2] % 4 == 2 and f[5] == f[15]  # type: ignore[operator]
        other = {k for k, value in f.items() if largest_divisor(UNI10_CLASSES, int(str(value))) != largest_divisor(
            UNI10_CLASSES, k)}
        assert other == ({12} if name == "epoch 581" else set())
    for k in (1, 2, 3, 4, 5):
        shares = [cell for cell in TABLES["pred_uni1000_400"].cells if cell.row == f"GCD {k}"]
        assert 93 <= sum(float(cell.published) for cell in shares) <= 103  # type: ignore[arg-type]
        assert all(cell.measure.value % k == 0 for cell in shares)


@pytest.mark.parametrize("name", ["fast", "paper"])
def test_every_run_can_be_built(name: str) -> None:
    seen = experiments()
    assert len(seen) == len({one for table in TABLES.values() for one in table.experiments()})
    for one in seen.values():
        config = one.config(name, seed=3)
        problem = Problem.of(config)
        assert (problem.base, problem.task.name, config.training.seed) == (one.base, one.task, 3)
        assert config.data.operands == one.operands and config.data.outcomes == one.outcomes


def test_the_paper_preset_is_as_published() -> None:
    seen = experiments()
    base = seen["base-30"].config("paper")
    assert base.identity() == preset("paper").derive(base=30).identity()
    rational = seen["division_base-10_max-100000"].config("paper")
    assert (rational.training.lr, rational.training.schedule, rational.training.warmup) == (1e-4, "inverse-sqrt", 10_000)
    assert seen["base-30_mixture-outcomes"].config("paper").identity() == preset("paper-mixture").derive(
        base=30, mixture_share=None).identity()
    wide = seen["base-30_layers-1_dim-512"].config("fast")
    fast = preset("fast")
    assert wide.training.lr == pytest.approx(fast.training.lr * fast.model.decoder_dim / 512)
    assert seen["base-30"].config("fast").training.lr == fast.training.lr
    assert (wide.model.encoder_dim, wide.model.encoder_layers, wide.model.encoder_heads) == (512, 1, 8)


def test_sections_hold_every_table_once_in_the_order_of_its_number() -> None:
    names = [name for section in SECTIONS for name in section.tables]
    assert sorted(names) == sorted(TABLES)
    for figures in (False, True):
        numbers = [TABLES[name].number for name in names if TABLES[name].is_figure == figures]
        assert numbers == list(range(1, len(numbers) + 1))


def test_parameters_agree_with_our_models() -> None:
    cells = [cell for table in TABLES.values() for cell in table.cells if cell.measure.kind == "parameters"]
    assert len(cells) == 6 + 12
    for cell in cells:
        assert compute(cell) == pytest.approx(float(str(cell.published)), abs=0.11) or cell.note is not None, cell
        config = cell.experiment.config("paper")
        assert parameters(cell.experiment) == count_parameters(config, Problem.of(config)), "the formula is our model's"


def test_theory_agrees_with_our_formulas() -> None:
    for cell in TABLES["theory"].cells:
        if cell.measure.kind != "theory":
            continue
        base, published = cell.experiment.base, float(str(cell.published))
        right = 100 * 6 / 3.141592653589793**2 * prod(p**2 / (p**2 - 1) for p in theory.prime_factors(base))
        assert compute(cell) == round(right, 1)
        assert theory.paper_formula(base) == pytest.approx(published, abs=0.11) or base == 15
        assert published == pytest.approx(right, abs=0.11) or cell.note is not None
        assert (cell.note is not None) == (len(theory.prime_factors(base)) > 1)


def test_encodings_agree_with_our_tokens() -> None:
    assert all(compute(cell) == cell.published for cell in TABLES["encodings"].cells)


def test_slips_of_the_paper_are_noted_where_they_are() -> None:
    assert column("lstm3", "lstm 1024") == column("lstm3", "gru 2048") != column("lstm3", "gru 1024")
    noted = {cell.column for cell in TABLES["lstm3"].cells if cell.note is not None}
    assert noted == {"lstm 1024", "gru 2048"}
    by_place = {(cell.row, cell.column): cell.note for cell in TABLES["grokking_det"].cells}
    late = by_place["2744", "5 at epoch"]
    assert late is not None and "1300" in late.text and by_place["2744", "3 at epoch"] is None
    assert by_place["2744", "GCD predicted"] is not None and by_place["4000", "3 at epoch"] is None


def imported(path: Path) -> set[str]:
    """The modules of the package that a file imports, at its top or within a function."""
    names = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module:
            names |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
        elif isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
    return names


def test_the_data_goes_one_way() -> None:
    modules = {path.stem: path for path in (PACKAGE / "paper").glob("*.py")}
    assert {*modules, "tables"} == set(ORDER)
    for own, path in modules.items():
        names = imported(path)
        later = [name for name in ORDER[ORDER.index(own):] if name != "__init__" and f"gcdformer.paper.{name}" in names]
        assert later == [], f"{path.name} imports {later}, which come after it"


def test_the_verb_is_one_module_that_only_reads_its_flags() -> None:
    (path,) = (PACKAGE / "commands").glob("reproduce*.py")
    assert not any(name.startswith("gcdformer.commands") for name in imported(path))
    changed = [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Attribute)
               and isinstance(node.ctx, ast.Store) and isinstance(node.value, ast.Name) and node.value.id == "args"]
    assert changed == []
