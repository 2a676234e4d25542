"""Kernels of reciprocal and of its gradient."""

from __future__ import annotations

from oprack.kernel import Array, ArrayModule, kernel

from oprack_math.kernels._numeric import conjugate
from oprack_math.kernels._sets import BOTH, FLOATING


@kernel("reciprocal", place=BOTH, dtypes=FLOATING)
def reciprocal(X: Array, *, out: Array | None = None, xp: ArrayModule) -> Array:
    """1 / X."""
    return xp.divide(X.dtype.type(1), X, out=out)


@kernel("reciprocal_grad", place=BOTH, dtypes=FLOATING)
def reciprocal_grad(Out: Array, Out_grad: Array, *, xp: ArrayModule) -> Array:
    """-Out@GRAD Out^2."""
    return -Out_grad * conjugate(Out * Out, xp)
