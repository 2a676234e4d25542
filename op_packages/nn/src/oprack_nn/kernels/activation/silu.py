"""Kernels of silu and its gradient."""

from __future__ import annotations

from oprack.kernel import Array, ArrayModule, kernel

from oprack_nn.kernels._smooth import sigmoid as logistic
from oprack_nn.kernels.activation._family import BOTH, NUMBERS


@kernel("silu", place=BOTH, dtypes=NUMBERS)
def silu(X: Array, *, xp: ArrayModule) -> Array:
    return X * logistic(X, xp)


@kernel("silu_grad", place=BOTH, dtypes=NUMBERS)
def silu_grad(X: Array, Out_grad: Array, *, xp: ArrayModule) -> Array:
    """By X alone, as kernel libraries have it; Out says no more."""
    s, one = logistic(X, xp), X.dtype.type(1)
    return Out_grad * xp.conj(s * (one + X * (one - s)))
