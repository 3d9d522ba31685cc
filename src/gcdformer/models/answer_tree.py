"""Listed answers, each with an offset to its log-probability, as a tree of prefixes that the decoder can be asked about.

A *node* is a prefix that some listed answer continues; its *slot* in a table of scores has the node's number. An
answer's slot comes behind the nodes', one more slot is for a sequence that is no listed answer, and a last one is for
padding. Knows token ids, not integers.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from gcdformer.numbers.encoding import BEGIN, END, PAD, Integers, Mask

LogScores = npt.NDArray[np.float64]


@dataclass(frozen=True)
class AnswerTree:
    """Answers that all begin with the same token, a sign, and end with END."""

    answers: Integers
    """(answers, longest), END included, padded."""
    offsets: LogScores
    """(answers,)."""
    paths: Integers
    """(nodes, deepest): BEGIN and the prefix of each node, padded. Node 0 is the empty prefix, node 1 the sign."""
    lengths: Integers
    bounds: LogScores
    """(slots,): the largest offset among the answers of a slot."""
    first_tokens: Integers
    """What follows the sign, and the slots it leads to."""
    first_slots: Integers
    next_tokens: Integers
    """(nodes, children): the same for every other node, padded."""
    next_slots: Integers

    @property
    def least(self) -> float:
        """The offset of every sequence that is not listed: the smallest of those listed."""
        return float(self.offsets.min())

    @property
    def sign(self) -> int:
        return int(self.answers[0, 0])

    @property
    def nodes(self) -> int:
        return len(self.paths)

    @property
    def other(self) -> int:
        """The slot of a sequence that is not listed."""
        return self.nodes + len(self.answers)

    @property
    def slots(self) -> int:
        return self.other + 2

    @property
    def one_token(self) -> bool:
        """Whether every answer is one token between the sign and END."""
        return bool(self.paths.shape[1] == 3)

    def token_offsets(self, vocabulary: int) -> LogScores:
        """(vocabulary,): what is added to the logits of the token behind the sign, if every answer is one token."""
        offsets = np.full(vocabulary, self.least)
        offsets[self.answers[:, 1]] = self.offsets
        return offsets

    @cached_property
    def numbers(self) -> dict[tuple[int, ...], int]:
        """The number of each answer, by its tokens without padding."""
        return {tuple(token for token in answer if token != PAD): number
                for number, answer in enumerate(self.answers.tolist())}

    def number_of(self, tokens: Integers) -> Integers:
        """Which answer each of these rows (n, longest) is; -1 if it is not listed."""
        ends = np.where((tokens == END).any(1), (tokens == END).argmax(1) + 1, tokens.shape[1])
        return np.array([self.numbers.get(tuple(row[:end]), -1) for row, end in zip(tokens.tolist(), ends, strict=True)],
                        dtype=np.int64)

    def listed(self, tokens: Integers) -> Mask:
        """Which of these rows are listed answers."""
        return self.number_of(tokens) >= 0

    def offsets_of(self, tokens: Integers) -> LogScores:
        """The offset of each of these rows."""
        number = self.number_of(tokens)
        return np.where(number < 0, self.least, self.offsets[number])


def answer_tree(sequences: list[list[int]], offsets: LogScores) -> AnswerTree:
    """The tree of these answers, each a sign, some tokens and END."""
    numbers: dict[tuple[int, ...], int] = {(): 0}
    children: list[dict[int, int]] = [{}]
    for sequence in sequences:
        for end in range(1, len(sequence)):
            prefix = tuple(sequence[:end])
            if prefix not in numbers:
                numbers[prefix] = len(children)
                children[numbers[prefix[:-1]]][prefix[-1]] = len(children)
                children.append({})
    count = len(children)
    bounds = np.full(count + len(sequences) + 2, -np.inf)
    for index, (sequence, offset) in enumerate(zip(sequences, offsets.tolist(), strict=True)):
        assert sequence[0] == sequences[0][0] and sequence[-1] == END
        children[numbers[tuple(sequence[:-1])]][END] = count + index
        bounds[count + index] = offset
        for end in range(len(sequence)):
            node = numbers[tuple(sequence[:end])]
            bounds[node] = max(bounds[node], offset)
    deepest, longest = max(map(len, numbers)) + 1, max(map(len, sequences))
    paths = np.array([[BEGIN, *prefix, *[PAD] * (deepest - 1 - len(prefix))] for prefix in numbers], dtype=np.int64)
    answers = np.array([[*sequence, *[PAD] * (longest - len(sequence))] for sequence in sequences], dtype=np.int64)
    later = [{} if node < 2 else child for node, child in enumerate(children)]
    width = max(map(len, later))
    none = len(bounds) - 1
    tables = [[[*pick(child), *[empty] * (width - len(child))] for child in later]
              for pick, empty in ((dict.keys, PAD), (dict.values, none))]
    next_tokens, next_slots = (np.array(table, dtype=np.int64) for table in tables)
    return AnswerTree(
        answers=answers, offsets=np.asarray(offsets, dtype=np.float64), paths=paths,
        lengths=np.array([1 + len(prefix) for prefix in numbers], dtype=np.int64), bounds=bounds,
        first_tokens=np.array(list(children[1]), dtype=np.int64),
        first_slots=np.array(list(children[1].values()), dtype=np.int64), next_tokens=next_tokens, next_slots=next_slots)
