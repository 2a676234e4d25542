"""Kernels of sequence_scatter."""

from __future__ import annotations

import numpy as np
from oprack.errors import InvalidArgumentError
from oprack.kernel import Array, ArrayModule, KernelContext, kernel
from oprack.types import FLOATS, INTEGERS

from oprack_sequence.kernels._lod import host, segment_ids, sequence_offsets


@kernel("sequence_scatter", place=("cpu", "cuda"), dtypes=FLOATS | INTEGERS, deterministic={"cpu"})
def sequence_scatter(X: Array, Ids: Array, Updates: Array, *, ctx: KernelContext, xp: ArrayModule) -> Array:
    """One unbuffered addition at (sequence, id)."""
    rows, columns = _places(Ids, X.shape, ctx, xp)
    out = X.copy()
    xp.add.at(out, (rows, columns), Updates.reshape(-1))
    return out


@kernel("sequence_scatter_grad", place=("cpu", "cuda"), dtypes=FLOATS | INTEGERS)
def sequence_scatter_grad(Ids: Array, Out_grad: Array, *, ctx: KernelContext, xp: ArrayModule) -> dict[str, Array]:
    """A copy for X, one gather for Updates."""
    rows, columns = _places(Ids, Out_grad.shape, ctx, xp)
    return {"X@GRAD": Out_grad.copy(), "Updates@GRAD": Out_grad[rows, columns].reshape(-1, 1)}


def _places(Ids: Array, shape: tuple[int, ...], ctx: KernelContext, xp: ArrayModule) -> tuple[Array, Array]:
    """Row and column of each update."""
    offsets = sequence_offsets(ctx, "Ids")
    if len(offsets) - 1 != shape[0]:
        raise InvalidArgumentError(
            f"op {ctx.op_type}: Ids has {len(offsets) - 1} sequences, but X has {shape[0]} rows; expected as many"
        )
    columns = host(Ids).reshape(-1)
    if len(columns) and not (0 <= columns.min() and columns.max() < np.prod(shape[1:])):
        raise InvalidArgumentError(
            f"op {ctx.op_type}: Ids lie in [{columns.min()}, {columns.max()}]; expected columns of X, "
            f"from 0 to {shape[1] - 1}"
        )
    return xp.asarray(segment_ids(offsets)), Ids.reshape(-1)
