"""Kernels of sequence_conv."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from oprack.errors import InvalidArgumentError
from oprack.kernel import Array, ArrayModule, KernelContext, kernel
from oprack.types import FLOATS

from oprack_sequence.kernels._lod import segment_ids, sequence_offsets, sum_by_index


@kernel("sequence_conv", place=("cpu", "cuda"), dtypes=FLOATS)
def sequence_conv(
    X: Array,
    Filter: Array,
    PaddingData: Array | None = None,
    *,
    contextStart: int,
    contextLength: int,
    paddingTrainable: bool,
    ctx: KernelContext,
    xp: ArrayModule,
) -> Array:
    """Windows gathered into one matrix, then one product."""
    if paddingTrainable:
        padding = _padding(PaddingData, contextStart, contextLength, X, ctx)
        windows = xp.concatenate([X, padding])[xp.asarray(_rows(contextStart, contextLength, ctx))]
    else:
        windows = _windows(X, contextStart, contextLength, ctx, xp)
    return windows.reshape(len(X), len(Filter)) @ Filter


@kernel("sequence_conv_grad", place=("cpu", "cuda"), dtypes=FLOATS, deterministic={"cpu"})
def sequence_conv_grad(
    X: Array,
    Filter: Array,
    Out_grad: Array,
    PaddingData: Array | None = None,
    *,
    contextStart: int,
    contextLength: int,
    paddingTrainable: bool,
    ctx: KernelContext,
    xp: ArrayModule,
) -> dict[str, Array | None]:
    """Two products; the windows' gradients are added up where they overlap."""
    grads: dict[str, Array | None] = {"X@GRAD": None, "Filter@GRAD": None, "PaddingData@GRAD": None}
    if paddingTrainable:
        padding = _padding(PaddingData, contextStart, contextLength, X, ctx)
        rows = _rows(contextStart, contextLength, ctx)
        windows = xp.concatenate([X, padding])[xp.asarray(rows)]
        window_grads = (Out_grad @ Filter.T).reshape(-1, X.shape[1])
        sums = sum_by_index(window_grads, rows.reshape(-1), len(X) + len(padding), xp)
        grads["X@GRAD"], grads["PaddingData@GRAD"] = sums[: len(X)], sums[len(X) :]
    else:
        windows = _windows(X, contextStart, contextLength, ctx, xp)
        if ctx.wants("X@GRAD"):
            window_grads = (Out_grad @ Filter.T).reshape(windows.shape)
            grads["X@GRAD"] = _add_windows(window_grads, contextStart, ctx, xp)
    if ctx.wants("Filter@GRAD"):
        grads["Filter@GRAD"] = windows.reshape(len(X), len(Filter)).T @ Out_grad
    return grads


def _padding(PaddingData: Array | None, start: int, length: int, X: Array, ctx: KernelContext) -> Array:
    """PaddingData, rows that stand for those outside a sequence."""
    outside = max(0, -start) + max(0, start + length - 1)
    if PaddingData is None or tuple(PaddingData.shape) != (outside, X.shape[1]):
        shape = "absent" if PaddingData is None else f"of shape {list(PaddingData.shape)}"
        raise InvalidArgumentError(
            f"op {ctx.op_type}: PaddingData is {shape}; expected {[outside, X.shape[1]]} with paddingTrainable, "
            f"contextStart {start} and contextLength {length}"
        )
    return PaddingData


def _rows(start: int, length: int, ctx: KernelContext) -> Array:
    """[N, length]: row of each place of each window among X followed by PaddingData."""
    offsets = sequence_offsets(ctx, "X")
    ids = segment_ids(offsets)
    first, last = offsets[:-1][ids][:, None], offsets[1:][ids][:, None]
    rows = np.arange(len(ids))[:, None] + start + np.arange(length)
    up = len(ids) + max(0, -start)
    return np.where(rows < first, up + rows - first, np.where(rows >= last, up + rows - last, rows))


def _shifts(start: int, length: int, ctx: KernelContext) -> Iterator[tuple[int, int, int, int, Array]]:
    """(place in the window, rows of X from, to, shift, rows whose place there is outside of their sequence)."""
    offsets = sequence_offsets(ctx, "X")
    ids = segment_ids(offsets)
    n, row = len(ids), np.arange(len(ids))
    first, last = offsets[:-1][ids], offsets[1:][ids]
    for place, shift in enumerate(range(start, start + length)):
        low, high = min(max(shift, 0), n), max(min(n + shift, n), 0)
        outside = np.flatnonzero(row + shift < first if shift < 0 else row + shift >= last)
        yield place, low, max(low, high), shift, outside


def _windows(X: Array, start: int, length: int, ctx: KernelContext, xp: ArrayModule) -> Array:
    """[N, length, D]: the rows around each row, zeros outside of its sequence."""
    windows = xp.zeros((len(X), length, X.shape[1]), X.dtype)
    for place, low, high, shift, outside in _shifts(start, length, ctx):
        windows[low - shift : high - shift, place] = X[low:high]
        windows[xp.asarray(outside), place] = 0
    return windows


def _add_windows(grads: Array, start: int, ctx: KernelContext, xp: ArrayModule) -> Array:
    """[N, D]: the sum of what all windows, [N, length, D], say of each row. Overwrites grads."""
    total = xp.zeros((len(grads), grads.shape[2]), grads.dtype)
    for place, low, high, shift, outside in _shifts(start, grads.shape[1], ctx):
        grads[xp.asarray(outside), place] = 0
        total[low:high] += grads[low - shift : high - shift, place]
    return total
