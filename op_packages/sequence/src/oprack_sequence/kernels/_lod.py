"""Arithmetic on LoD offsets: segment ids, positions, row ranges, sums per sequence, and time-major packing.

Offsets are int64 [n + 1] of n sequences over N rows, offsets[0] = 0 and offsets[n] = N; a sequence may be empty.
Everything about offsets is computed with NumPy on the host, where LoD lives; only rows are touched with `xp`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from oprack.errors import InvalidLoDError
from oprack.kernel import Array, ArrayModule
from oprack.tensor import LoDTensor


def sequence_offsets(ctx: Any, slot: str, i: int = 0, level: int = -1) -> np.ndarray:
    """Offsets of one level (the innermost) of input i of a slot.

    Raises InvalidLoDError when that input has no LoD.
    """
    lod = ctx.lod(slot, i)
    if not lod:
        raise InvalidLoDError(
            f"op {ctx.op_type}: {slot} has no LoD; expected the offsets of its sequences, "
            "so feed it as LoDTensor(array, lod=[[0, ...]])"
        )
    return np.asarray(lod[level], np.int64)


def absolute_offsets(lod: Sequence[Sequence[int]], level: int) -> np.ndarray:
    """Offsets of one level in rows, where LoD counts sequences of the next level."""
    offsets = np.asarray(lod[level], np.int64)
    for below in lod[level + 1 :]:
        offsets = np.asarray(below, np.int64)[offsets]
    return offsets


def offsets_of(lengths: np.ndarray) -> np.ndarray:
    """Offsets of sequences of these lengths."""
    offsets = np.zeros(len(lengths) + 1, np.int64)
    np.cumsum(lengths, out=offsets[1:])
    return offsets


def segment_ids(offsets: np.ndarray) -> np.ndarray:
    """int64 [N]: the sequence of each row."""
    return np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))


def positions(offsets: np.ndarray) -> np.ndarray:
    """int64 [N]: the position of each row within its sequence."""
    return np.arange(offsets[-1]) - np.repeat(offsets[:-1], np.diff(offsets))


def row_ranges(starts: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """Concatenation of the ranges start, start + 1, ... of these lengths."""
    offsets = offsets_of(lengths)
    return np.arange(offsets[-1]) + np.repeat(np.asarray(starts, np.int64) - offsets[:-1], lengths)


def reversed_rows(offsets: np.ndarray) -> np.ndarray:
    """int64 [N]: row to read at each place so that every sequence runs backwards."""
    lengths = np.diff(offsets)
    return np.repeat(offsets[:-1] + offsets[1:] - 1, lengths) - np.arange(offsets[-1])


def padded_rows(offsets: np.ndarray, width: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows laid out as [n, width]: (row, 0 where there is none; whether there is one)."""
    step = np.arange(width)
    valid = step < np.diff(offsets)[:, None]
    return np.where(valid, offsets[:-1, None] + step, 0), valid


def segment_sum(x: Array, offsets: np.ndarray, xp: ArrayModule) -> Array:
    """[n, ...]: sum of the rows of each sequence of x [N, ...]; 0 for an empty one."""
    out = xp.zeros((len(offsets) - 1, *x.shape[1:]), x.dtype)
    filled = np.flatnonzero(np.diff(offsets))
    if not len(filled):
        return out
    if xp is np:
        out[filled] = np.add.reduceat(x, offsets[filled], axis=0)
    else:
        xp.add.at(out, xp.asarray(segment_ids(offsets)), x)
    return out


def sum_by_index(x: Array, index: np.ndarray, n: int, xp: ArrayModule) -> Array:
    """[n, ...]: row i is the sum of the rows of x [N, ...] whose index [N] is i."""
    order = np.argsort(index, kind="stable")
    return segment_sum(x[xp.asarray(order)], offsets_of(np.bincount(index, minlength=n)), xp)


def with_lod(array: Array, levels: Iterable[Any]) -> LoDTensor:
    """A kernel's output with the offsets of each level, lists or arrays, which are trusted."""
    lod = [level.tolist() if isinstance(level, np.ndarray) else list(level) for level in levels]
    return LoDTensor(array, lod, check=False)


def host(x: Array) -> np.ndarray:
    """x as a NumPy array; waits for the device when x lies there (lengths that decide a shape)."""
    return x.get() if hasattr(x, "get") else np.asarray(x)


class Packing:
    """Rows of sequences in time-major order, longest sequence first: what a recurrent loop walks through.

    Step t holds one row of each sequence longer than t, so the rows of a step are a prefix of those of the step
    before, and empty sequences take no part.

    order: int64 [n], sequences by descending length (stable). sizes: rows of each step. starts: their offsets [T + 1].
    time, sequence, rows: int64 [N], the step, the sequence and the row of each packed row; with `reverse` every
    sequence is walked from its last row.
    """

    def __init__(self, offsets: np.ndarray, reverse: bool = False) -> None:
        self._build(offsets[:-1], np.diff(offsets), reverse)

    @classmethod
    def padded(cls, lengths: np.ndarray, width: int) -> Packing:
        """For rows of [n, width, ...] flattened to [n * width, ...], of which the first `lengths` are valid."""
        packing = cls.__new__(cls)
        packing._build(np.arange(len(lengths)) * width, lengths, False)
        return packing

    def _build(self, first: np.ndarray, lengths: np.ndarray, reverse: bool) -> None:
        self.order = np.argsort(-lengths, kind="stable")
        steps = int(lengths.max()) if len(lengths) else 0
        # sequences longer than t = all minus those of length <= t
        sizes = len(lengths) - np.cumsum(np.bincount(lengths, minlength=steps + 1))[:steps]
        starts = offsets_of(sizes)
        self.time = np.repeat(np.arange(steps), sizes)
        self.sequence = self.order[positions(starts)]
        self.rows = first[self.sequence] + (lengths[self.sequence] - 1 - self.time if reverse else self.time)
        self.sizes: list[int] = sizes.tolist()
        self.starts: list[int] = starts.tolist()
        self._sizes = sizes

    @property
    def steps(self) -> list[tuple[int, int]]:
        """(first, past the last) packed row of each step."""
        return list(zip(self.starts, self.starts[1:], strict=False))

    def pack(self, x: Array, xp: ArrayModule) -> Array:
        """Rows of x in packed order (a copy)."""
        return x[xp.asarray(self.rows)]

    def unpack(self, packed: Array, xp: ArrayModule) -> Array:
        """Packed rows back in the order of the sequences."""
        out = xp.empty_like(packed)
        out[xp.asarray(self.rows)] = packed
        return out

    def previous(self, packed: Array, initial: Array | None, xp: ArrayModule) -> Array:
        """For each packed row the one a step before in its sequence; at the first step `initial` [n, D] or zeros."""
        out = xp.empty_like(packed)
        if not self.sizes:
            return out
        first = self.sizes[0]
        out[:first] = 0 if initial is None else initial[xp.asarray(self.order[:first])]
        before = np.arange(first, len(self.rows)) - np.repeat(self._sizes[:-1], self._sizes[1:])
        out[first:] = packed[xp.asarray(before)]
        return out

    def scatter_initial(self, first: Array | None, like: Array, xp: ArrayModule) -> Array:
        """Gradient of the initial state, from that of the first step's rows; zero for empty sequences."""
        out = xp.zeros_like(like)
        if self.sizes:
            out[xp.asarray(self.order[: self.sizes[0]])] = first
        return out
