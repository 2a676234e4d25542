"""Kernels of elementwise_pow and of its gradient."""

from __future__ import annotations

from oprack.kernel import Array, ArrayModule, KernelContext, kernel

from oprack_math.kernels._broadcast import align, sum_to
from oprack_math.kernels._numeric import conjugate
from oprack_math.kernels._sets import BOTH, NUMBERS


@kernel("elementwise_pow", place=BOTH, dtypes=NUMBERS)
def elementwise_pow(X: Array, Y: Array, *, axis: int, xp: ArrayModule) -> Array:
    """X to the power of Y."""
    x, y = align(X, Y, axis, "elementwise_pow")
    if X.dtype.kind in "iu":
        if xp.__name__ == "numpy" and not (y < 0).any():
            return xp.power(x, y)  # exact, while float64 can't represent large integers
        # NumPy refuses negative exponents of integers, and CuPy would have to wait to find them: compute in float64.
        return xp.power(x.astype(xp.float64), y.astype(xp.float64)).astype(X.dtype)
    return xp.power(x, y)


@kernel("elementwise_pow_grad", place=BOTH, dtypes=NUMBERS)
def elementwise_pow_grad(
    Out_grad: Array, X: Array, Y: Array, *, axis: int, ctx: KernelContext, xp: ArrayModule
) -> tuple[Array | None, Array | None]:
    """Out@GRAD Y X^(Y-1) and Out@GRAD X^Y ln X; integers are computed in float64."""
    x, y = align(X, Y, axis, "elementwise_pow_grad")
    dtype, g = X.dtype, Out_grad
    if dtype.kind in "iu":
        g, x, y = (a.astype(xp.float64) for a in (g, x, y))
    one = y.dtype.type(1)
    dx = (
        sum_to((g * conjugate(y * xp.power(x, y - one), xp)).astype(dtype, copy=False), x, X)
        if ctx.wants("X@GRAD")
        else None
    )
    dy = (
        sum_to((g * conjugate(xp.power(x, y) * xp.log(x), xp)).astype(dtype, copy=False), y, Y)
        if ctx.wants("Y@GRAD")
        else None
    )
    return dx, dy
