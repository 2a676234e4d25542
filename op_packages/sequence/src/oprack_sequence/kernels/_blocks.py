"""Sequences against sequences in blocks: which are computed as one batched product, and which pairs of rows count.

Sequences of equal length that follow one another are a view of their rows. Others of like length are gathered into a
padded block where that is less work than a product for each length. A block of many scores is computed in parts, of
fewer sequences or fewer queries, so that memory grows with the rows alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from oprack.kernel import Array, ArrayModule

# A product of its own, with all that belongs to it, takes about as long as this many scores.
_SCORES_OF_A_CALL = 1 << 14
# ... and as the copies of so many elements of queries and keys.
_ELEMENTS_OF_A_CALL = 1 << 14
# Scores that are computed at once: they and what is made of them stay in the caches of a core.
_SCORES_AT_ONCE = 1 << 18
# ... of so many queries at least, as products of few rows are slow; where heads are as wide, the scores of a long
# sequence then take as much memory as its keys.
_QUERIES_AT_LEAST = 64


class Reach(NamedTuple):
    """Which positions a query looks at.

    Attributes:
        before: How many positions before its own; -1: all.
        behind: How many behind it; -1: all.
        from_end: Whether the last query stands at the last key, rather than the first one at the first.
    """

    before: int = -1
    behind: int = -1
    from_end: bool = False

    @classmethod
    def of(cls, causal: bool, window: list[int] | tuple[int, int] = (-1, -1)) -> Reach:
        """That of the attributes `causal` and `window`."""
        return cls(window[0], 0 if causal else window[1], causal)


class Rows:
    """The rows of some sequences as [sequences, width, ...], padded where they are not all of one length.

    Args:
        starts: The first row of each sequence.
        lengths: How many each has, at least one.
    """

    def __init__(self, starts: np.ndarray, lengths: np.ndarray) -> None:
        self.width = int(lengths.max())
        self.even = bool((lengths == self.width).all())
        self.starts, first, count = starts, int(starts[0]), len(starts)
        self.view: slice | None = None
        if count == 1 or (self.even and (np.diff(starts) == self.width).all()):
            self.view = slice(first, first + count * self.width)
            return
        step = np.arange(self.width)
        self.index = starts[:, None] + np.minimum(step, lengths[:, None] - 1)
        self.valid = step < lengths[:, None]

    @property
    def numbers(self) -> np.ndarray:
        """int64 [sequences, width], the row of each place; behind the end of a sequence they go on."""
        return self.starts[:, None] + np.arange(self.width)

    def take(self, x: Array, xp: ArrayModule) -> Array:
        """[sequences, width, ...]; a place behind the end of a sequence has its last row."""
        if self.view is not None:
            return x[self.view].reshape(-1, self.width, *x.shape[1:])
        return x[xp.asarray(self.index)]

    def put(self, x: Array, part: slice, value: Array, xp: ArrayModule) -> None:
        """Set the rows of x to values [sequences, part of the width, ...]; what lies behind an end goes nowhere."""
        if self.view is not None:
            x[self.view].reshape(-1, self.width, *x.shape[1:])[:, part] = value
        elif self.even:
            x[xp.asarray(self.index[:, part])] = value
        else:
            valid = self.valid[:, part]
            x[xp.asarray(self.index[:, part][valid])] = value[xp.asarray(valid)]

    def add(self, x: Array, part: slice, value: Array, xp: ArrayModule) -> None:
        """As put, but add: only one sequence alone, whose rows are a view, is in several blocks."""
        if self.view is None:
            self.put(x, part, value, xp)
        else:
            x[self.view].reshape(-1, self.width, *x.shape[1:])[:, part] += value


class Block(NamedTuple):
    """Some queries of some sequences, and the keys that they may see.

    Attributes:
        sequences: Their numbers.
        q: The rows of queries.
        k: The rows of keys.
        queries: Which places of q.
        keys: Which places of k.
        distance: int64 [queries, keys], position of the key less that of the query.
        hidden: bool, broadcast to [sequences, 1, queries, keys], what a query does not see; None where it sees all.
    """

    sequences: np.ndarray
    q: Rows
    k: Rows
    queries: slice
    keys: slice
    distance: np.ndarray
    hidden: np.ndarray | None


def blocks(q_offsets: np.ndarray, k_offsets: np.ndarray, heads: int, width: int, reach: Reach) -> Iterator[Block]:
    """All pairs of queries and keys that count, in blocks; a sequence without queries or without keys is in none.

    Args:
        q_offsets: int64 [n + 1], where the sequences of the queries begin.
        k_offsets: The same for the keys.
        heads: For how many heads each pair is computed.
        width: Elements of a row, of all heads.
        reach: Which positions a query looks at.

    Yields:
        Blocks, in an order that depends on the arguments alone.
    """
    queries, keys = np.diff(q_offsets), np.diff(k_offsets)
    for group in _groups(queries, keys, heads, width, reach.from_end):
        cells = int(queries[group].max() * keys[group].max()) * heads
        at_once = max(1, _SCORES_AT_ONCE // cells)
        for i in range(0, len(group), at_once):
            part = group[i : i + at_once]
            q, k = Rows(q_offsets[part], queries[part]), Rows(k_offsets[part], keys[part])
            yield from _parts(part, q, k, keys[part], heads, reach)


def alike(offsets: np.ndarray, width: int) -> Iterator[Rows]:
    """All rows, of sequences of like length together; those without rows are in none.

    Args:
        offsets: int64 [n + 1], where the sequences begin.
        width: Elements of a row.

    Yields:
        The rows of some sequences.
    """
    lengths = np.diff(offsets)
    for group in _groups(lengths, np.ones_like(lengths), width, width, False):
        yield Rows(offsets[group], lengths[group])


def _groups(queries: np.ndarray, keys: np.ndarray, heads: int, width: int, from_end: bool) -> Iterator[np.ndarray]:
    """Numbers of the sequences that are computed together.

    Neighbours of equal lengths are, as they need no copy. Others are where copies and padding cost less than calls.
    """
    changes = np.flatnonzero((np.diff(queries) != 0) | (np.diff(keys) != 0)) + 1
    starts = np.concatenate([[0], changes]).astype(np.int64)[: len(queries)]
    counts = np.diff(np.append(starts, len(queries)))
    a, b = queries[starts], keys[starts]
    few = counts * (a + b) * width < _ELEMENTS_OF_A_CALL
    seen = (a > 0) & (b > 0)
    for run in np.flatnonzero(seen & ~few):
        yield np.arange(starts[run], starts[run] + counts[run])
    shift = b - a if from_end else np.zeros_like(b)  # positions of one block are aligned in one way
    runs = np.flatnonzero(seen & few)
    runs = runs[np.lexsort((a[runs], b[runs], shift[runs]))]
    for first, last in _worth_a_call(shift[runs], b[runs], a[runs], counts[runs], heads):
        yield np.concatenate([np.arange(starts[run], starts[run] + counts[run]) for run in runs[first:last]])


def _worth_a_call(
    shift: np.ndarray, keys: np.ndarray, queries: np.ndarray, counts: np.ndarray, heads: int
) -> Iterator[tuple[int, int]]:
    """Ranges of runs of sequences, in ascending order, that one call may compute with little padding."""
    first = total = cells = calls = longest = 0
    for i, (turned, b, a, n) in enumerate(zip(*(x.tolist() for x in (shift, keys, queries, counts)), strict=True)):
        padded = (total + n) * max(longest, a) * b * heads
        wasted = padded - cells - n * a * b * heads
        if i > first and (turned != shift[first] or wasted > calls * _SCORES_OF_A_CALL):
            yield first, i
            first, total, cells, calls, longest = i, 0, 0, 0, 0
        total, cells, calls, longest = total + n, cells + n * a * b * heads, calls + 1, max(longest, a)
    if calls:
        yield first, len(keys)


def _parts(sequences: np.ndarray, q: Rows, k: Rows, lengths: np.ndarray, heads: int, reach: Reach) -> Iterator[Block]:
    """A block, or several of fewer queries where one sequence alone has many scores."""
    shift = k.width - q.width if reach.from_end else 0
    step = q.width if len(sequences) > 1 else max(_QUERIES_AT_LEAST, _SCORES_AT_ONCE // (k.width * heads))
    for start in range(0, q.width, step):
        stop = min(start + step, q.width)
        low = 0 if reach.before < 0 else min(max(start + shift - reach.before, 0), k.width)
        high = k.width if reach.behind < 0 else min(max(stop + shift + reach.behind, low), k.width)
        if low == high:
            continue  # none of them sees a key
        distance = np.arange(low, high) - (np.arange(start, stop) + shift)[:, None]
        hidden = _hidden(distance, reach, None if k.even else np.arange(low, high) >= lengths[:, None])
        yield Block(sequences, q, k, slice(start, stop), slice(low, high), distance, hidden)


def _hidden(distance: np.ndarray, reach: Reach, missing: np.ndarray | None) -> np.ndarray | None:
    """What no query of a block may see: keys out of reach, and those `missing` [sequences, keys] behind the end."""
    hidden = None if missing is None else missing[:, None, None]
    if 0 <= reach.before < -int(distance.min()):
        far = distance < -reach.before
        hidden = far[None, None] if hidden is None else hidden | far
    if 0 <= reach.behind < int(distance.max()):
        far = distance > reach.behind
        hidden = far[None, None] if hidden is None else hidden | far
    return hidden
