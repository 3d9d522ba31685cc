"""Where Int2Int writes a task otherwise than we do: comparison, which it asks as a/b > c/d and answers by a bare 0 or 1.

Ours is a/b < c/d, and its answer an integer with a sign. Files of Int2Int text are in Int2Int's sense; both directions are
exact, since a question tells its answer in either sense. Knows questions and answers, no lines.
"""

from __future__ import annotations

import numpy as np

from gcdformer.data.kinds import Kind
from gcdformer.data.problem import Problem
from gcdformer.numbers.encoding import Integers
from gcdformer.tasks.rational import Comparison

OTHER_FRACTION_FIRST = [2, 3, 0, 1]
BARE_BIT = Kind(1, low=0, high=1)


def int2int_kinds(problem: Problem) -> tuple[Kind, Kind]:
    """The types of question and answer in Int2Int text."""
    question, answer = problem.kinds
    return (question, BARE_BIT) if isinstance(problem.task, Comparison) else (question, answer)


def int2int_answers(problem: Problem, questions: Integers) -> Integers | None:
    """The bare answers that Int2Int gives, (n,); None where they are written as ours."""
    if not isinstance(problem.task, Comparison):
        return None
    return np.asarray(problem.task.answer(questions[:, OTHER_FRACTION_FIRST])[:, 0])


def from_int2int(problem: Problem, rows: Integers) -> Integers:
    """Questions and answers in our sense; an answer that is wrong in Int2Int's is wrong in ours."""
    questions = rows[:, :problem.task.inputs]
    theirs = int2int_answers(problem, questions)
    if theirs is None:
        return rows
    ours = problem.answer(questions)
    wrong = rows[:, -1:] != theirs[:, None]
    return np.concatenate([questions, np.where(wrong, 1 - ours, ours)], axis=1)
