"""Kernels of trunc and of its gradient."""

from __future__ import annotations

from oprack.kernel import Array, ArrayModule, kernel

from oprack_math.kernels._sets import BOTH, REAL


@kernel("trunc", place=BOTH, dtypes=REAL)
def trunc(X: Array, *, xp: ArrayModule) -> Array:
    """The integer next to X towards 0; integers are copied."""
    return X.copy() if X.dtype.kind in "iu" else xp.trunc(X)


@kernel("trunc_grad", place=BOTH, dtypes=REAL)
def trunc_grad(Out_grad: Array, *, xp: ArrayModule) -> Array:
    """Zeros."""
    return xp.zeros_like(Out_grad)
