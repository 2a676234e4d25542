"""Kernels of lerp and of its gradient."""

from __future__ import annotations

from oprack.kernel import Array, ArrayModule, KernelContext, kernel

from oprack_math.kernels._broadcast import align, sum_to
from oprack_math.kernels._numeric import rounded_once
from oprack_math.kernels._sets import BOTH, REAL_FLOATS


@kernel("lerp", place=BOTH, dtypes=REAL_FLOATS)
@rounded_once
def lerp(X: Array, Y: Array, Weight: Array) -> Array:
    """X + Weight (Y - X)."""
    return X + Weight * (Y - X)


@kernel("lerp_grad", place=BOTH, dtypes=REAL_FLOATS)
@rounded_once
def lerp_grad(
    X: Array, Y: Array, Weight: Array, Out_grad: Array, *, ctx: KernelContext, xp: ArrayModule
) -> tuple[Array | None, Array | None]:
    """Shares of Out@GRAD, summed where X or Y was broadcast."""
    # Weight may be of the highest rank, and the one input that is not broadcast
    by_y = xp.broadcast_to(Out_grad * Weight, Out_grad.shape)
    dx = sum_to(Out_grad - by_y, align(X, Out_grad, -1)[0], X) if ctx.wants("X@GRAD") else None
    return dx, sum_to(by_y, align(Y, Out_grad, -1)[0], Y) if ctx.wants("Y@GRAD") else None
