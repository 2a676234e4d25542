"""The rows of sequences of any lengths in time-major order, longest sequence first."""

from __future__ import annotations

from functools import cached_property, lru_cache

import numpy as np
from oprack.kernel import Array

# above this many sequences a primitive does one step: joining several saves nothing
_JOINED = 64


def rounded(n: int) -> int:
    """Sequences of the primitive for one step of n sequences: few different ones, so that chains repeat."""
    step = 1 << max(0, (n - 1).bit_length() - 5)
    return -(-n // step) * step


class Order:
    """Time-major order of the rows of sequences: packed rows hold the first rows of all, then the second ones ...

    Args:
        lengths: Of the sequences.
        first: The row in which each begins.
        stride: How many rows lie between two rows of one sequence.

    Attributes:
        count: Number of sequences.
        order: The sequences by their numbers, longest first; empty ones are left out.
        runs: (first packed row, sequences, steps) for each stretch of steps in which no sequence ends.
        total: Number of packed rows.
        behind: How many rows a step may reach behind its own.
    """

    def __init__(self, lengths: Array, first: Array, stride: int) -> None:
        self.count = len(lengths)
        # Stable, so that equal sequences stay in their order, and results do not depend on the sort.
        order = np.argsort(-lengths, kind="stable")
        order = self.order = order[: np.count_nonzero(lengths)]
        lengths = lengths[order]
        # lengths of shorter and shorter sequences are where runs end
        ends, last = np.unique(lengths[::-1], return_index=True)
        running = (len(lengths) - last).tolist()
        self.runs, start, done = [], 0, 0
        for n, end in zip(running, ends.tolist(), strict=True):
            self.runs.append((start, n, end - done))
            start += n * (end - done)
            done = end
        self.total = start
        self.behind = max((rounded(n) - n for n in running), default=0)
        self._lengths, self._first, self._stride = lengths, first[order], stride
        # How many sequences still run at each step.
        counts = np.repeat(running, np.diff(ends, prepend=0)) if running else np.zeros(0, np.intp)
        self._time = np.repeat(np.arange(done), counts)
        self._sequence = np.arange(start) - np.repeat(np.cumsum(counts) - counts, counts)
        self._rows: dict[bool, np.ndarray] = {}

    def rows(self, reverse: bool) -> Array:
        """For each packed row, the row that it holds; with `reverse`, sequences are walked from their last row on."""
        found = self._rows.get(reverse)
        if found is None:
            time = (self._lengths - 1)[self._sequence] - self._time if reverse else self._time
            found = self._rows[reverse] = self._first[self._sequence] + time * self._stride
        return found

    def inverse(self, reverse: bool) -> Array:
        """For each row of the sequences, the number of the packed row that holds it."""
        rows = self.rows(reverse)
        found = np.empty(self.total, np.intp)
        found[rows] = np.arange(self.total)
        return found

    @property
    def steps(self) -> list[tuple[int, int]]:
        """(first packed row, sequences that a chain takes) of every step."""
        return [(start + t * n, rounded(n)) for start, n, steps in self.runs for t in range(steps)]

    @property
    def last(self) -> Array:
        """The packed row in which each sequence of `order` ends."""
        ends = np.cumsum([steps for _, _, steps in self.runs])
        rows = np.array([start + (steps - 1) * n for start, n, steps in self.runs])
        return rows[np.searchsorted(ends, self._lengths)] + np.arange(len(self.order))

    @cached_property
    def joined_steps(self) -> list[tuple[int, int, int, int]]:
        """(first packed row, steps, sequences that the chain takes, first packed row of the last step)."""
        found = []
        for start, n, steps in self.runs:
            while steps:
                # powers of two, so that chains repeat
                size = 1 if n > _JOINED else 1 << steps.bit_length() - 1
                found.append((start, size, rounded(n) if size == 1 else n, start + (size - 1) * n))
                start += size * n
                steps -= size
        return found


# The layers of a net walk the same sequences one after the other, forward and back.
@lru_cache(maxsize=16)
def order_of(offsets: tuple[int, ...]) -> Order:
    """The order of sequences with these offsets, a tuple."""
    ends = np.array(offsets)
    return Order(np.diff(ends), ends[:-1], 1)
