"""Kernels of ceil and of its gradient."""

from __future__ import annotations

from oprack.kernel import Array, ArrayModule, kernel

from oprack_math.kernels._sets import BOTH, REAL_FLOATS


@kernel("ceil", place=BOTH, dtypes=REAL_FLOATS)
def ceil(X: Array, *, out: Array | None = None, xp: ArrayModule) -> Array:
    """The smallest integer that is not smaller."""
    return xp.ceil(X, out=out)


@kernel("ceil_grad", place=BOTH, dtypes=REAL_FLOATS)
def ceil_grad(Out_grad: Array, *, xp: ArrayModule) -> Array:
    """Zeros."""
    return xp.zeros_like(Out_grad)
