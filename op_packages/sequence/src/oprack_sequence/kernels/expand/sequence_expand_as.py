"""Kernels of sequence_expand_as."""

from __future__ import annotations

import numpy as np
from oprack.errors import InvalidArgumentError
from oprack.kernel import Array, ArrayModule, KernelContext, kernel
from oprack.tensor import ShapeOnly
from oprack.types import FLOATS, INTEGERS

from oprack_sequence.kernels._lod import segment_ids, segment_sum, sequence_offsets


@kernel("sequence_expand_as", place=("cpu", "cuda"), dtypes=FLOATS | INTEGERS)
def sequence_expand_as(X: Array, *, ctx: KernelContext, xp: ArrayModule) -> Array:
    """One gather of rows."""
    return X[xp.asarray(segment_ids(_offsets(X, ctx)))]


@kernel("sequence_expand_as_grad", place=("cpu", "cuda"), dtypes=FLOATS | INTEGERS, deterministic={"cpu"})
def sequence_expand_as_grad(X: ShapeOnly, Out_grad: Array, *, ctx: KernelContext, xp: ArrayModule) -> Array:
    """Sum over each sequence."""
    return segment_sum(Out_grad, _offsets(X, ctx), xp)


def _offsets(X: Array | ShapeOnly, ctx: KernelContext) -> np.ndarray:
    """Offsets of the sequences of Y, of which there is one for each row of X."""
    offsets = sequence_offsets(ctx, "Y")
    if len(offsets) - 1 != X.shape[0]:
        raise InvalidArgumentError(
            f"op {ctx.op_type}: X has {X.shape[0]} rows, but Y has {len(offsets) - 1} sequences; expected as many"
        )
    return offsets
