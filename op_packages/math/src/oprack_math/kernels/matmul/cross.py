"""Kernels of cross and of its gradient."""

from __future__ import annotations

from oprack.kernel import Array, ArrayModule, KernelContext, kernel

from oprack_math.kernels._sets import BOTH, REAL
from oprack_math.ops.matmul.cross import FIRST_OF_THREE


def _axis(x: Array, dim: int) -> int:
    return x.shape.index(3) if dim == FIRST_OF_THREE else dim


@kernel("cross", place=BOTH, dtypes=REAL)
def cross(X: Array, Y: Array, *, dim: int, xp: ArrayModule) -> Array:
    """X x Y."""
    return xp.cross(X, Y, axis=_axis(X, dim))


@kernel("cross_grad", place=BOTH, dtypes=REAL)
def cross_grad(
    X: Array, Y: Array, Out_grad: Array, *, dim: int, ctx: KernelContext, xp: ArrayModule
) -> tuple[Array | None, Array | None]:
    """The other factor and Out@GRAD, in the order that gives the sign."""
    axis = _axis(X, dim)
    dx = xp.cross(Y, Out_grad, axis=axis) if ctx.wants("X@GRAD") else None
    return dx, xp.cross(Out_grad, X, axis=axis) if ctx.wants("Y@GRAD") else None
