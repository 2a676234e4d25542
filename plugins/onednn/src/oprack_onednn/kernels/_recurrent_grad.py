"""The way back of recurrent layers in native code (recurrent_grad.c): the gradients of the gates, step by step.

What remains are products of matrices (dense.c).
"""

from __future__ import annotations

from collections.abc import Sequence
from ctypes import Structure, addressof, c_int64, c_void_p
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from oprack.kernel import Array

from oprack_onednn.c.runner import RUNNER
from oprack_onednn.chain.memory import BUFFERS
from oprack_onednn.chain.thread import THREAD
from oprack_onednn.dnnl.operands import FLOAT, address
from oprack_onednn.kernels._dense import COLUMN_SUMS, loop, multiply
from oprack_onednn.kernels._recurrent import CELLS, FUNCTIONS, GATES, Cell, Order, order_of, packed
from oprack_onednn.kernels.declare import Limits

_ROWS = 4  # sequences that a thread has at least


class _WayBack(Structure):
    """The struct of recurrent_grad.c, field by field."""

    _fields_ = (
        *((name, c_int64) for name in ("cell", "steps", "size", "out_row", "origin")),
        ("functions", c_int64 * 2),
        *((name, c_void_p) for name in ("first", "counts", "before", "kept", "h", "out", "w_gates", "w_candidate")),
        *((name, c_void_p) for name in ("dh", "dc", "d", "d_state", "scratch")),
    )


@dataclass(frozen=True)
class Steps:
    """Rows in which sequences are walked, longest first, so that those of a step lie one after the other.

    Attributes:
        first: The first row of each step, in the order in which they are walked.
        counts: How many rows each step has: one of each sequence that still runs.
        begin, later: The rows of the first step, and of the others.
        previous: For each of the others the row of the step before, in the same sequence.
        rows: Where the caller has them, one behind the other; None where they are all of the caller's.
        numbers: Which sequences they are, as the caller numbers them; None when they are all of them, in their order.
    """

    first: Array
    counts: Array
    begin: slice
    later: slice
    previous: slice | Array
    rows: Array | None = None
    numbers: Array | None = None

    def taken(self, a: Array) -> Array:
        """Rows of the caller's, as they are walked."""
        return a if self.rows is None else np.take(a, self.rows, axis=0)

    def put(self, d: Array, count: int) -> Array:
        """Rows as the caller has them, so many; those that are not walked are 0."""
        if self.rows is None:
            return d
        found = BUFFERS.take((count, *d.shape[1:]))
        if len(d) < count:
            found.fill(0)
        found[self.rows] = d
        return found


def padded_steps(lengths: Array, steps: int, reverse: bool) -> Steps:
    """Steps of time-major rows [steps, sequences]: of each sequence its first ones; not all are empty."""
    batch = len(lengths)
    if (lengths < steps).any():
        return steps_of(Order(np.arange(batch), lengths, batch), reverse)
    last, first = (steps - 1) * batch, np.arange(steps) * batch
    begin, later = (slice(last, None), slice(last)) if reverse else (slice(batch), slice(batch, None))
    previous = slice(batch, None) if reverse else slice(last)
    return Steps(np.ascontiguousarray(first[::-1] if reverse else first), np.full(steps, batch), begin, later, previous)


def steps_of(order: Order, reverse: bool) -> Steps:
    """Steps of sequences of any lengths, not all of them empty."""
    starts, lengths, stride = order.walk(reverse, slice(None))
    numbers = np.arange(lengths[0])
    counts = np.searchsorted(-lengths, -numbers, side="left")
    first = np.cumsum(counts) - counts
    sequence, time = np.arange(counts.sum()) - np.repeat(first, counts), np.repeat(numbers, counts)
    previous = np.repeat(first[:-1], counts[1:]) + sequence[counts[0] :]
    begin, later = slice(counts[0]), slice(counts[0], None)
    return Steps(first, counts, begin, later, previous, starts[sequence] + time * stride, order.numbers)


# The layers of a net walk the same sequences one after the other.
@lru_cache(maxsize=4)
def steps_of_lod(offsets: tuple[int, ...], reverse: bool) -> Steps:
    """Steps of sequences with these offsets, not all of them empty."""
    return steps_of(order_of(offsets), reverse)


def gradients_of_gates(
    cell: Cell,
    steps: Steps,
    weights: Sequence[Array],
    before: Array,
    kept: Array,
    out: Array,
    states: Sequence[Array],
    h: Array | None = None,
) -> tuple[Array, Array]:
    """The gradients of all gates, by products with the input and with h, [rows, gates size]; often the same array.

    Args:
        cell: What a step computes.
        steps: The rows.
        weights: [gates size, size]; of a "gru" [2 size, size] of u and r, and [size, size] of the candidate.
        before: c of an "lstm", or h, before the first step, [sequences, size].
        kept: What the way forward kept, row-major, as recurrent.c says; of a "gru" u, r and c alone.
        out: The gradients of each row's h; rows may be parts of longer ones.
        states: The gradients of h, and c of an LSTM, after the last step, row-major; they get those before the first.
        h: Each row's h, of a "gru".
    """
    assert RUNNER.recurrent_grad is not None
    size, rows = out.shape[-1], int(steps.counts.sum())
    d = BUFFERS.take((rows, GATES[cell.kind] * size))
    d_state = BUFFERS.take(d.shape) if cell.kind == "lbr_gru" else d
    matrices = [packed(w) for w in weights]
    before, scratch = np.ascontiguousarray(before), BUFFERS.take(before.shape)
    call = _WayBack(CELLS[cell.kind], len(steps.counts), size, out.strides[-2] // FLOAT.itemsize, cell.origin)
    call.functions[:] = [FUNCTIONS[name] for name in cell.functions[:2]]
    named = {"first": steps.first, "counts": steps.counts, "before": before, "kept": kept, "h": h, "out": out}
    named |= dict(zip(("w_gates", "w_candidate"), matrices, strict=False))
    named |= dict(zip(("dh", "dc"), states, strict=False)) | {"d": d, "d_state": d_state, "scratch": scratch}
    for field, array in named.items():
        if array is not None:
            setattr(call, field, address(array))
    large = 2 * size * d.size >= Limits.apart
    threads = min(THREAD.max_threads, max(1, int(steps.counts[0]) // _ROWS)) if large else 1
    RUNNER.recurrent_grad(addressof(call), threads)
    return d, d_state


def product(x: Array, y: Array) -> Array:
    """x y of matrices that are not empty."""
    found = multiply(x, y, 1.0, (x.shape[0], y.shape[1]))
    return x @ y if found is None else found


def column_sums(d: Array) -> Array:
    """The sum of the rows of a matrix."""
    found = loop(COLUMN_SUMS, d)
    return d.sum(axis=0) if found is None else found
