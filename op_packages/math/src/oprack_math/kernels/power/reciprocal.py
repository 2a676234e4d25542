"""Kernels of reciprocal and of its gradient."""

from __future__ import annotations

from oprack.kernel import kernel

from oprack_math.kernels._sets import BOTH, REAL_FLOATS


@kernel("reciprocal", place=BOTH, dtypes=REAL_FLOATS)
def reciprocal(X, *, out=None, xp):
    """1 / X."""
    return xp.divide(X.dtype.type(1), X, out=out)


@kernel("reciprocal_grad", place=BOTH, dtypes=REAL_FLOATS)
def reciprocal_grad(Out, Out_grad, *, xp):
    """-Out@GRAD Out^2."""
    return -Out_grad * Out * Out
