"""Kernels of sequence_conv."""

from __future__ import annotations

import numpy as np
from oprack.errors import InvalidArgumentError
from oprack.kernel import kernel
from oprack.types import FLOATS

from oprack_sequence.kernels._lod import segment_ids, sequence_offsets, sum_by_index


@kernel("sequence_conv", place=("cpu", "cuda"), dtypes=FLOATS)
def sequence_conv(X, Filter, PaddingData=None, *, contextStart, contextLength, paddingTrainable, ctx, xp):
    """Windows gathered into one matrix, then one product."""
    padding = _padding(PaddingData, paddingTrainable, contextStart, contextLength, X, ctx, xp)
    windows, _ = _windows(X, padding, contextStart, contextLength, paddingTrainable, ctx, xp)
    return windows.reshape(len(X), len(Filter)) @ Filter


@kernel("sequence_conv_grad", place=("cpu", "cuda"), dtypes=FLOATS)
def sequence_conv_grad(
    X, Filter, Out_grad, PaddingData=None, *, contextStart, contextLength, paddingTrainable, ctx, xp
):
    """Two products; the windows' gradients are added up where they overlap."""
    padding = _padding(PaddingData, paddingTrainable, contextStart, contextLength, X, ctx, xp)
    windows, rows = _windows(X, padding, contextStart, contextLength, paddingTrainable, ctx, xp)
    grads = {"X@GRAD": None, "Filter@GRAD": None, "PaddingData@GRAD": None}
    if ctx.wants("Filter@GRAD"):
        grads["Filter@GRAD"] = windows.reshape(len(X), len(Filter)).T @ Out_grad
    if ctx.wants("X@GRAD") or ctx.wants("PaddingData@GRAD"):
        window_grads = (Out_grad @ Filter.T).reshape(-1, X.shape[1])
        sums = sum_by_index(window_grads, rows.reshape(-1), len(X) + len(padding), xp)
        grads["X@GRAD"] = sums[: len(X)]
        if paddingTrainable and PaddingData is not None:
            grads["PaddingData@GRAD"] = sums[len(X) :]
    return grads


def _padding(PaddingData, trainable, start, length, X, ctx, xp):
    """Rows that stand for those outside a sequence: PaddingData, or one row of zeros for all."""
    if not trainable:
        return xp.zeros((1, X.shape[1]), X.dtype)
    outside = max(0, -start) + max(0, start + length - 1)
    if PaddingData is None or tuple(PaddingData.shape) != (outside, X.shape[1]):
        shape = "absent" if PaddingData is None else f"of shape {list(PaddingData.shape)}"
        raise InvalidArgumentError(
            f"op {ctx.op_type}: PaddingData is {shape}; expected {[outside, X.shape[1]]} with paddingTrainable, "
            f"contextStart {start} and contextLength {length}"
        )
    return PaddingData


def _windows(X, padding, start, length, trainable, ctx, xp):
    """([N, length, D], row of each among X followed by padding)."""
    offsets = sequence_offsets(ctx, "X")
    ids = segment_ids(offsets)
    first, last = offsets[:-1][ids][:, None], offsets[1:][ids][:, None]
    rows = np.arange(len(ids))[:, None] + start + np.arange(length)
    before, past = rows < first, rows >= last
    if trainable:
        up = len(ids) + max(0, -start)
        rows = np.where(before, up + rows - first, np.where(past, up + rows - last, rows))
    else:
        rows[before | past] = len(ids)
    return xp.concatenate([X, padding])[xp.asarray(rows)], rows
