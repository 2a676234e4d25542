"""Kernels of sequence_slice."""

from __future__ import annotations

import numpy as np
from oprack.errors import InvalidArgumentError
from oprack.kernel import Array, ArrayModule, KernelContext, kernel
from oprack.tensor import LoDTensor
from oprack.types import FLOATS, INTEGERS

from oprack_sequence.kernels._lod import host, offsets_of, row_ranges, sequence_offsets, with_lod


@kernel("sequence_slice", place=("cpu", "cuda"), dtypes=FLOATS | INTEGERS)
def sequence_slice(X: Array, Offset: Array, Length: Array, *, ctx: KernelContext, xp: ArrayModule) -> LoDTensor:
    """One gather of rows."""
    rows, lengths = _rows(Offset, Length, ctx)
    return with_lod(X[xp.asarray(rows)], [*ctx.lod("X")[:-1], offsets_of(lengths)])


@kernel("sequence_slice_grad", place=("cpu", "cuda"), dtypes=FLOATS | INTEGERS)
def sequence_slice_grad(Offset: Array, Length: Array, Out_grad: Array, *, ctx: KernelContext, xp: ArrayModule) -> Array:
    """One scatter of rows into zeros."""
    rows, _ = _rows(Offset, Length, ctx)
    x_grad = xp.zeros((int(sequence_offsets(ctx, "X")[-1]), *Out_grad.shape[1:]), Out_grad.dtype)
    x_grad[xp.asarray(rows)] = Out_grad
    return x_grad


def _rows(Offset: Array, Length: Array, ctx: KernelContext) -> tuple[Array, Array]:
    """(rows of X that stay, how many of each sequence)."""
    offsets = sequence_offsets(ctx, "X")
    starts = host(Offset).reshape(-1).astype(np.int64)
    lengths = host(Length).reshape(-1).astype(np.int64)
    available = np.diff(offsets)
    if not len(starts) == len(lengths) == len(available):
        raise InvalidArgumentError(
            f"op {ctx.op_type}: Offset has {len(starts)} and Length {len(lengths)} elements; "
            f"expected {len(available)}, one for each sequence of X"
        )
    wrong = np.flatnonzero((starts < 0) | (lengths < 0) | (starts + lengths > available))
    if len(wrong):
        i = int(wrong[0])
        raise InvalidArgumentError(
            f"op {ctx.op_type}: sequence {i} has {available[i]} rows, but Offset is {starts[i]} and Length "
            f"{lengths[i]}; expected 0 <= Offset and Offset + Length <= rows"
        )
    return row_ranges(offsets[:-1] + starts, lengths), lengths
