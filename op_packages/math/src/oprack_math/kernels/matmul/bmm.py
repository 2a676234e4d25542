"""Kernels of bmm and of its gradient."""

from __future__ import annotations

from oprack.kernel import Array, ArrayModule, KernelContext, kernel

from oprack_math.kernels._sets import BOTH, FLOATING, NUMBERS
from oprack_math.kernels.matmul._family import by_x, by_y, matmul


@kernel("bmm", place=BOTH, dtypes=NUMBERS)
def bmm(X: Array, Y: Array, *, xp: ArrayModule) -> Array:
    """Products of a batch of matrices."""
    return matmul(X, Y, xp)


@kernel("bmm_grad", place=BOTH, dtypes=FLOATING)
def bmm_grad(
    X: Array, Y: Array, Out_grad: Array, *, ctx: KernelContext, xp: ArrayModule
) -> tuple[Array | None, Array | None]:
    """Out@GRAD Y^T and X^T Out@GRAD."""
    dx = by_x(Out_grad, X, Y, False, False, xp) if ctx.wants("X@GRAD") else None
    return dx, by_y(Out_grad, X, Y, False, False, xp) if ctx.wants("Y@GRAD") else None
