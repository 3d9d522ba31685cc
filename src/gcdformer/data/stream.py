"""The training stream: example n is a pure function of (seed, n).

Examples come in blocks of 4,096; block j is drawn by a generator of its own, whose counter is j. So the same
examples come whatever the chunk size, the number of ranks or the place one starts from, and nothing has to be
saved. A data budget makes the blocks come again, reshuffled; a repeat share replaces some examples by ones of a
small set; a distribution of the GCD that shifts does so from block to block; the rows of a file come in passes, each in
an order of its own. All are functions of (seed, n) too.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cached_property

import numpy as np

from gcdformer.config import Config
from gcdformer.data.problem import Problem
from gcdformer.data.reading import read_examples
from gcdformer.numbers.distributions import PairDistribution, pair_distribution
from gcdformer.numbers.encoding import Integers
from gcdformer.numbers.random import Purpose, block_generator

BLOCK = 4096
DEFAULT_REPEAT_SIZE = 50_000


class Stream:
    """Questions by number. Caches the last block it made, since batches are smaller than blocks."""

    def __init__(self, problem: Problem, seed: int, *, budget: int | None = None, repeat_share: float = 0.0,
                 repeat_size: int | None = None, distribution_at: Callable[[int], PairDistribution] | None = None,
                 rows: Integers | None = None) -> None:
        self.problem = problem
        self.seed = seed
        self.budget = budget
        self.repeat_share = repeat_share
        self.repeat_size = repeat_size or DEFAULT_REPEAT_SIZE
        self.distribution_at = distribution_at
        """The pair distribution by example number, if it changes."""
        self.rows = rows
        """The rows of a file, which are then the examples."""
        self._pass: tuple[int, Integers] | None = None
        self._block: tuple[int, Integers] | None = None
        self._source: tuple[int, Integers] | None = None

    @classmethod
    def of(cls, config: Config, problem: Problem) -> Stream:
        data, training = config.data, config.training
        distribution_at = None
        if data.shifts and training.horizon is not None:
            last = training.horizon * training.batch_size

            def distribution_at(example: int) -> PairDistribution:
                return pair_distribution(data, problem.maximum, example / last)

        rows = None if data.train_file is None else read_examples(data.train_file, problem, "train_file").rows
        return cls(problem, training.seed, budget=data.budget, repeat_share=data.repeat_share,
                   repeat_size=data.repeat_size, distribution_at=distribution_at, rows=rows)

    def examples(self, start: int, stop: int) -> Integers:
        """Questions number start..stop-1, (stop-start, inputs); answers follow in the row where only a file knows them."""
        width = self.problem.task.inputs if self.rows is None else self.rows.shape[1]
        parts = [np.empty((0, width), dtype=np.int64)]
        for index in range(start // BLOCK, -(-stop // BLOCK)):
            first = index * BLOCK
            block = self.block(index)
            parts.append(block[max(start - first, 0):stop - first])
        return np.concatenate(parts)

    def block(self, index: int) -> Integers:
        """Questions number index*BLOCK .. (index+1)*BLOCK-1."""
        if self._block is None or self._block[0] != index:
            self._block = (index, self._make_block(index))
        return self._block[1]

    def _make_block(self, index: int) -> Integers:
        if self.rows is not None:
            return self._in_passes(index * BLOCK, (index + 1) * BLOCK, self.rows)
        if self.budget is None:
            questions = self._fresh(Purpose.TRAINING, index)
        else:
            questions = self._budgeted(index * BLOCK, (index + 1) * BLOCK, self.budget)
        if self.repeat_share:
            rng = block_generator(self.seed, Purpose.REPEAT_CHOICE, index)
            chosen = np.flatnonzero(rng.random(BLOCK) < self.repeat_share)
            questions = questions.copy()
            questions[chosen] = self._repeated_set[rng.integers(0, self.repeat_size, len(chosen))]
        return questions

    def _fresh(self, purpose: Purpose, index: int) -> Integers:
        problem = self.problem
        if self.distribution_at is not None:
            problem = replace(problem, pairs=self.distribution_at(index * BLOCK))
        return problem.draw(block_generator(self.seed, purpose, index), BLOCK)

    @cached_property
    def _repeated_set(self) -> Integers:
        blocks = range(-(-self.repeat_size // BLOCK))
        return np.concatenate([self._fresh(Purpose.REPEATED_SET, j) for j in blocks])[:self.repeat_size]

    def _budgeted(self, start: int, stop: int, budget: int) -> Integers:
        """Passes over the first `budget` examples: in each, whole blocks in random order, the part of a block
        that is left over last, and every block shuffled within."""
        parts = []
        while start < stop:
            turn, position = divmod(start, budget)
            whole = budget // BLOCK
            place, offset = divmod(position, BLOCK)
            source = place if turn == 0 or place == whole else int(self._order(turn, whole)[place])
            length = BLOCK if source < whole else budget - whole * BLOCK
            block = self._source_block(source)[:length]
            if turn:
                block = block_generator(self.seed, Purpose.RESHUFFLE, 1 + source, turn).permutation(block)
            take = min(length - offset, stop - start)
            parts.append(block[offset:offset + take])
            start += take
        return np.concatenate(parts)

    def _in_passes(self, start: int, stop: int, rows: Integers) -> Integers:
        """Passes over the rows, each a permutation of all of them."""
        parts = []
        while start < stop:
            turn, position = divmod(start, len(rows))
            if self._pass is None or self._pass[0] != turn:
                self._pass = (turn, block_generator(self.seed, Purpose.FILE_ORDER, 0, turn).permutation(len(rows)))
            take = min(len(rows) - position, stop - start)
            parts.append(rows[self._pass[1][position:position + take]])
            start += take
        return np.concatenate(parts)

    def _source_block(self, index: int) -> Integers:
        """A block of the first pass; the last one is cached, since a small budget is one block over and over."""
        if self._source is None or self._source[0] != index:
            self._source = (index, self._fresh(Purpose.TRAINING, index))
        return self._source[1]

    def _order(self, turn: int, blocks: int) -> Integers:
        return block_generator(self.seed, Purpose.RESHUFFLE, 0, turn).permutation(blocks)
