"""Kernels of round and of its gradient."""

from __future__ import annotations

from oprack.kernel import Array, ArrayModule, kernel

from oprack_math.kernels._sets import BOTH, REAL_FLOATS


@kernel("round", place=BOTH, dtypes=REAL_FLOATS)
def round_half_away(X: Array, *, xp: ArrayModule) -> Array:
    """The nearest integer; halves away from zero."""
    whole = xp.trunc(X)
    return whole + xp.copysign((xp.abs(X - whole) >= 0.5).astype(X.dtype), X)


@kernel("round_grad", place=BOTH, dtypes=REAL_FLOATS)
def round_grad(Out_grad: Array, *, xp: ArrayModule) -> Array:
    """Zeros."""
    return xp.zeros_like(Out_grad)
