"""Kernels of sequence_unpad."""

from __future__ import annotations

import numpy as np
from oprack.errors import InvalidArgumentError
from oprack.kernel import Array, ArrayModule, KernelContext, kernel
from oprack.tensor import LoDTensor, ShapeOnly
from oprack.types import FLOATS, INTEGERS

from oprack_sequence.kernels._lod import host, offsets_of, positions, segment_ids, sequence_offsets, with_lod


@kernel("sequence_unpad", place=("cpu", "cuda"), dtypes=FLOATS | INTEGERS)
def sequence_unpad(X: Array, Length: Array, *, ctx: KernelContext, xp: ArrayModule) -> LoDTensor:
    """One gather of rows."""
    lengths = host(Length).reshape(-1).astype(np.int64)
    batch, longest = X.shape[:2]
    if len(lengths) != batch or (lengths < 0).any() or (lengths > longest).any():
        raise InvalidArgumentError(
            f"op {ctx.op_type}: Length is {lengths.tolist()}; expected {batch} lengths from 0 to {longest}, "
            f"since X has shape {list(X.shape)}"
        )
    offsets = offsets_of(lengths)
    out = X[xp.asarray(segment_ids(offsets)), xp.asarray(positions(offsets))]
    if out.ndim == 1:
        out = out.reshape(-1, 1)
    return with_lod(out, [offsets])


@kernel("sequence_unpad_grad", place=("cpu", "cuda"), dtypes=FLOATS | INTEGERS)
def sequence_unpad_grad(X: ShapeOnly, Out_grad: Array, *, ctx: KernelContext, xp: ArrayModule) -> Array:
    """One scatter of rows into zeros."""
    offsets = sequence_offsets(ctx, "Out@GRAD")
    x_grad = xp.zeros(X.shape, Out_grad.dtype)
    rows = Out_grad if X.ndim > 2 else Out_grad.reshape(-1)
    x_grad[xp.asarray(segment_ids(offsets)), xp.asarray(positions(offsets))] = rows
    return x_grad
