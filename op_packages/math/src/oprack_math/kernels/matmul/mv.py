"""Kernels of mv and of its gradient."""

from __future__ import annotations

from oprack.kernel import Array, ArrayModule, KernelContext, kernel

from oprack_math.kernels._sets import BOTH, REAL_FLOATS
from oprack_math.kernels.matmul._family import matmul


@kernel("mv", place=BOTH, dtypes=REAL_FLOATS)
def mv(X: Array, Vec: Array, *, xp: ArrayModule) -> Array:
    """Matrix times vector."""
    return matmul(X, Vec, xp)


@kernel("mv_grad", place=BOTH, dtypes=REAL_FLOATS)
def mv_grad(
    X: Array, Vec: Array, Out_grad: Array, *, ctx: KernelContext, xp: ArrayModule
) -> tuple[Array | None, Array | None]:
    """The outer product, and the transposed matrix times Out@GRAD."""
    dx = Out_grad[:, None] * Vec if ctx.wants("X@GRAD") else None
    return dx, matmul(X.T, Out_grad, xp) if ctx.wants("Vec@GRAD") else None
