"""Tasks: drawn as the paper says, answered as Python's fractions say; a user's file loads, a bad one is explained."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from fractions import Fraction
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from gcdformer import Config, Problem, Stream, UserError
from gcdformer.data import testsets
from gcdformer.numbers.distributions import OPERAND_DISTRIBUTIONS
from gcdformer.numbers.encoding import Integers
from gcdformer.tasks import TASKS, Task, find_task
from gcdformer.tasks.registry import task_digest

EXAMPLE_FILE = Path(__file__).with_name("example_tasks.py")
EXAMPLE = f"{EXAMPLE_FILE}:ModularAddition"
NAMES = [*TASKS, EXAMPLE]
DRAWN = 2000
DRAWS = 200_000

# What Python itself says: exact integers and fractions of any size.
REFERENCE: dict[str, Callable[..., list[int]]] = {
    "gcd": lambda a, b: [math.gcd(a, b)],
    "comparison": lambda a, b, c, d: [int(Fraction(a, b) < Fraction(c, d))],
    "division": lambda a, b: [a // b],
    "addition": lambda a, b, c, d: list((Fraction(a, b) + Fraction(c, d)).as_integer_ratio()),
    "multiplication": lambda a, b, c, d: list((Fraction(a, b) * Fraction(c, d)).as_integer_ratio()),
    "simplification": lambda a, b: list(Fraction(a, b).as_integer_ratio()),
    "modular-addition": lambda a, b: [(a + b) % 67],
}

all_tasks = pytest.mark.parametrize("name", NAMES, ids=lambda name: name.rpartition(":")[2])
all_operands = pytest.mark.parametrize("operands", list(OPERAND_DISTRIBUTIONS))
maxima = pytest.mark.parametrize("maximum", [10, 100_000, 1_000_000])


def problem_of(name: str, operands: str = "uniform", maximum: int = 1_000_000) -> Problem:
    return Problem.of(Config().derive(task=name, operands=operands, maximum=maximum))


def questions_of(problem: Problem, count: int = DRAWN, seed: int = 3) -> Integers:
    return problem.draw(np.random.default_rng(seed), count)


def right_answers(task: Task, questions: Integers) -> list[list[int]]:
    return [REFERENCE[task.name](*row) for row in questions.tolist()]


@all_tasks
@all_operands
@maxima
def test_answers_are_those_of_python(name: str, operands: str, maximum: int) -> None:
    problem = problem_of(name, operands, maximum)
    questions = questions_of(problem)
    answers = problem.answer(questions)
    assert questions.shape == (DRAWN, problem.task.inputs) and questions.dtype == np.int64
    assert answers.shape == (DRAWN, problem.task.outputs) and answers.dtype == np.int64
    assert answers.tolist() == right_answers(problem.task, questions)


@all_tasks
@all_operands
@maxima
def test_bounds_hold_and_the_input_bound_is_near(name: str, operands: str, maximum: int) -> None:
    problem = problem_of(name, operands, maximum)
    questions = questions_of(problem, 20_000)
    answers = problem.answer(questions)
    assert questions.min() >= 1 and questions.max() <= problem.task.largest_input(maximum)
    assert answers.min() >= 0 and answers.max() <= problem.task.largest_output(maximum)
    assert questions.max() > 0.4 * problem.task.largest_input(maximum)


@all_tasks
def test_answers_are_right_up_to_the_largest_maximum_that_is_accepted(name: str) -> None:
    low, high = 2, 2**53 + 1  # accepted, refused
    while high - low > 1:
        middle = (low + high) // 2
        try:
            problem_of(name, maximum=middle)
            low = middle
        except UserError:
            high = middle
    problem = problem_of(name, maximum=low)
    questions = questions_of(problem, 500)
    questions[0] = problem.task.largest_input(low)
    assert problem.answer(questions).tolist() == right_answers(problem.task, questions)


@all_tasks
def test_draws_depend_on_the_generator_and_the_law_alone(name: str) -> None:
    problem = problem_of(name)
    questions = questions_of(problem)
    assert np.array_equal(questions, questions_of(problem_of(name)))
    assert not np.array_equal(questions, questions_of(problem, seed=4))
    assert np.median(questions_of(problem_of(name, "log-uniform"))) < 0.05 * np.median(questions)


@all_tasks
def test_tasks_go_through_tokens_and_test_sets(name: str) -> None:
    config = Config().derive(task=name, base=30, maximum=1000, operands="uniform", test_size=200)
    problem = Problem.of(config)
    batch = problem.encode_batch(Stream.of(config, problem).examples(0, 300))
    assert batch.inputs.shape[1] <= problem.longest_input and batch.targets.shape[1] - 1 <= problem.longest_target
    decoded, readable = problem.decode_answers(batch.targets[:, 1:])
    assert readable.all() and np.array_equal(decoded, problem.answer(Stream.of(config, problem).examples(0, 300)))
    sets = testsets.test_sets(config, problem, 1)
    assert set(sets) == ({"natural", "stratified"} if problem.task.has_gcd else {"test"})
    assert all(questions.shape == (200, problem.task.inputs) for questions in sets.values())


def test_every_task_of_the_paper_is_there() -> None:
    assert set(TASKS) == {"gcd", "comparison", "division", "addition", "multiplication", "simplification"}
    assert all(find_task(name).name == name for name in TASKS)
    assert [name for name in TASKS if find_task(name).has_gcd] == ["gcd"]


@pytest.mark.parametrize("name", [name for name in TASKS if not find_task(name).has_gcd])
def test_outcome_laws_are_for_the_gcd(name: str) -> None:
    with pytest.raises(UserError, match=f"outcomes.*'{name}'"):
        Problem.of(Config().derive(task=name, outcomes="log-uniform"))


# How questions are drawn: app:fractions

@all_operands
@maxima
def test_division_is_quotient_times_divisor_plus_remainder(operands: str, maximum: int) -> None:
    problem = problem_of("division", operands, maximum)
    questions = questions_of(problem, 20_000)
    a, n = questions.T
    p, m = a // n, a % n
    assert (m >= 1).all() and (m < n).all()
    assert n.max() <= maximum and p.min() >= 1 and p.max() <= maximum
    assert np.array_equal(problem.answer(questions)[:, 0], p)


@all_operands
@maxima
def test_simplification_is_a_common_multiple_of_a_reduced_fraction(operands: str, maximum: int) -> None:
    problem = problem_of("simplification", operands, maximum)
    questions = questions_of(problem, 20_000)
    p = np.gcd(questions[:, 0], questions[:, 1])
    assert p.min() >= 1 and p.max() <= maximum
    assert np.array_equal(problem.answer(questions) * p[:, None], questions)
    assert problem.answer(questions).max() <= maximum
    assert len(np.unique(p)) > min(maximum - 1, 1000)  # p is drawn, not the GCD of two random integers


def exact_distribution(name: str, operands: str, maximum: int) -> dict[tuple[int, ...], float]:
    """P(question), from every m, n, p (or a, b, c, d) in 1..M with its weight under the operand distribution."""
    p_of = dict(enumerate(OPERAND_DISTRIBUTIONS[operands].probabilities(maximum).tolist(), start=1))
    distribution: dict[tuple[int, ...], float] = {}
    drawn = 3 if name in ("division", "simplification") else find_task(name).inputs
    for integers in product(range(1, maximum + 1), repeat=drawn):
        question: tuple[int, ...] = integers
        if name == "division":
            m, n, p = integers
            if m >= n:
                continue
            question = (p * n + m, n)
        elif name == "simplification":
            m, n, p = integers
            question = (p * m // math.gcd(m, n), p * n // math.gcd(m, n))
        distribution[question] = distribution.get(question, 0.0) + math.prod(p_of[n] for n in integers)
    total = sum(distribution.values())
    return {question: weight / total for question, weight in distribution.items()}


@all_operands
@pytest.mark.parametrize(("name", "maximum"), [
    ("gcd", 8), ("comparison", 4), ("addition", 4), ("multiplication", 4), ("division", 5), ("simplification", 5)])
def test_questions_follow_the_exact_distribution(name: str, maximum: int, operands: str) -> None:
    distribution = exact_distribution(name, operands, maximum)
    rows, counts = np.unique(questions_of(problem_of(name, operands, maximum), DRAWS), axis=0, return_counts=True)
    observed = dict(zip(map(tuple, rows.tolist()), counts.tolist(), strict=True))
    assert set(observed) == set(distribution) and min(distribution.values()) * DRAWS > 10

    def p_value(expected: dict[tuple[int, ...], float]) -> float:
        counts = [observed[q] for q in distribution], [expected[q] * DRAWS for q in distribution]
        return float(stats.chisquare(*counts).pvalue)

    assert p_value(distribution) > 1e-4
    other = "uniform" if operands == "log-uniform" else "log-uniform"
    assert p_value(exact_distribution(name, other, maximum)) < 1e-4


# Tasks by name and by file

HEAD = "import numpy as np\nfrom gcdformer import Task\n"
BAD_FILES = {
    "no such class": (HEAD + "class Other(Task):\n    pass\n", "no subclass of gcdformer.Task named 'Mine'"),
    "not a task": (HEAD + "class Mine:\n    pass\n", "no subclass of gcdformer.Task named 'Mine'"),
    "not a class": ("Mine = 3\n", "no subclass of gcdformer.Task named 'Mine'"),
    "no methods": (HEAD + "class Mine(Task):\n    name = 'mine'\n    inputs = 2\n",
                   "lacks answer, draw, largest_input, largest_output"),
    "no name": (HEAD + "class Mine(Task):\n    draw = answer = largest_input = largest_output = None\n",
                "lacks name, inputs"),
    "raises": (HEAD + "raise ValueError('not today')\n", "ValueError: not today"),
    "raises in several lines": (HEAD + "raise ValueError('not\\ntoday')\n", "ValueError: not"),
    "does not parse": ("class Mine(:\n", "SyntaxError"),
    "imports what is not there": ("import no_such_module\n", "No module named 'no_such_module'"),
    "exits": ("raise SystemExit('bye')\n", "SystemExit: bye"),
    "needs arguments": (EXAMPLE_FILE.read_text()
                        + "\nclass Mine(ModularAddition):\n    def __init__(self, modulus): ...\n", "modulus"),
}


@pytest.mark.parametrize("case", BAD_FILES)
def test_a_bad_file_is_explained_in_one_line(case: str, tmp_path: Path) -> None:
    text, message = BAD_FILES[case]
    file = tmp_path / "bad.py"
    file.write_text(text)
    with pytest.raises(UserError, match=re.escape(message)) as caught:
        find_task(f"{file}:Mine")
    assert str(file) in str(caught.value) and "\n" not in str(caught.value)


@pytest.mark.parametrize("name", ["lcm", "", "GCD", "file.py", "notes.txt:Mine", ":Mine"])
def test_an_unknown_task_is_named_and_the_known_ones_listed(name: str) -> None:
    with pytest.raises(UserError, match=re.escape(f"unknown task '{name}'")) as caught:
        find_task(name)
    assert all(known in str(caught.value) for known in TASKS) and "\n" not in str(caught.value)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "folder.py").mkdir()
    for path in (tmp_path / "missing.py", tmp_path / "folder.py"):
        with pytest.raises(UserError, match=re.escape(f"no file {path}")) as caught:
            find_task(f"{path}:Mine")
        assert "\n" not in str(caught.value)


def test_a_users_file_may_use_dataclasses(tmp_path: Path) -> None:
    """They look their module up by name, so the file must be known as a module while it runs."""
    file = tmp_path / "own.py"
    file.write_text(EXAMPLE_FILE.read_text() + "\nfrom dataclasses import dataclass\n\n"
                    "@dataclass(frozen=True)\nclass Mine(ModularAddition):\n    times: int = 2\n")
    assert find_task(f"{file}:Mine").name == "modular-addition"


def test_a_users_file_has_a_digest(tmp_path: Path) -> None:
    file = tmp_path / "own.py"
    file.write_text("one")
    first = task_digest(f"{file}:Mine")
    file.write_text("two")
    assert first is not None and task_digest(f"{file}:Mine") not in (None, first)
    assert task_digest("gcd") is None
