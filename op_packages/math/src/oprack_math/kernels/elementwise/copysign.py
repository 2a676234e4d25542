"""Kernels of copysign and of its gradient."""

from __future__ import annotations

from oprack.kernel import Array, ArrayModule, KernelContext, kernel

from oprack_math.kernels._broadcast import align, sum_to
from oprack_math.kernels._sets import BOTH, REAL_FLOATS


@kernel("copysign", place=BOTH, dtypes=REAL_FLOATS)
def copysign(x: Array, y: Array, *, xp: ArrayModule) -> Array:
    """The size of x with the sign of y."""
    return xp.copysign(*align(x, y, -1, "copysign"))


@kernel("copysign_grad", place=BOTH, dtypes=REAL_FLOATS)
def copysign_grad(
    x: Array, y: Array, out_grad: Array, *, ctx: KernelContext, xp: ArrayModule
) -> tuple[Array | None, Array | None]:
    """out@GRAD where both signs are equal, else its negative; nothing to y."""
    left, right = align(x, y, -1, "copysign_grad")
    dx = sum_to(out_grad * xp.sign(left) * xp.copysign(xp.ones_like(right), right), left, x)
    return dx if ctx.wants("x@GRAD") else None, xp.zeros_like(y) if ctx.wants("y@GRAD") else None
