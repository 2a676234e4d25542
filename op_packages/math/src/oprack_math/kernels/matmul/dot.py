"""Kernels of dot and of its gradient."""

from __future__ import annotations

from oprack.kernel import Array, ArrayModule, KernelContext, kernel

from oprack_math.kernels._numeric import accumulator, conjugate
from oprack_math.kernels._sets import BOTH, NUMBERS


@kernel("dot", place=BOTH, dtypes=NUMBERS)
def dot(X: Array, Y: Array, *, xp: ArrayModule) -> Array:
    """Sum of products along the last dim."""
    return (X * Y).sum(axis=-1, dtype=accumulator(X.dtype)).astype(X.dtype, copy=False)


@kernel("dot_grad", place=BOTH, dtypes=NUMBERS)
def dot_grad(
    X: Array, Y: Array, Out_grad: Array, *, ctx: KernelContext, xp: ArrayModule
) -> tuple[Array | None, Array | None]:
    """Out@GRAD times the other factor."""
    g = Out_grad.reshape(*X.shape[:-1], 1)
    dx = g * conjugate(Y, xp) if ctx.wants("X@GRAD") else None
    return dx, g * conjugate(X, xp) if ctx.wants("Y@GRAD") else None
