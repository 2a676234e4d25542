"""Kernels of floor and of its gradient."""

from __future__ import annotations

from oprack.kernel import Array, ArrayModule, kernel

from oprack_math.kernels._sets import BOTH, REAL_FLOATS


@kernel("floor", place=BOTH, dtypes=REAL_FLOATS)
def floor(X: Array, *, out: Array | None = None, xp: ArrayModule) -> Array:
    """The greatest integer that is not greater."""
    return xp.floor(X, out=out)


@kernel("floor_grad", place=BOTH, dtypes=REAL_FLOATS)
def floor_grad(Out_grad: Array, *, xp: ArrayModule) -> Array:
    """Zeros."""
    return xp.zeros_like(Out_grad)
