"""Kernels of exp and of its gradient."""

from __future__ import annotations

from oprack.kernel import Array, ArrayModule, kernel

from oprack_math.kernels._numeric import conjugate
from oprack_math.kernels._sets import BOTH, NUMBERS
from oprack_math.kernels.power._family import as_float, same_dtype


@kernel("exp", place=BOTH, dtypes=NUMBERS)
def exp(X: Array, *, out: Array | None = None, xp: ArrayModule) -> Array:
    """e to the power of X."""
    x = as_float(X, xp)
    return xp.exp(x, out=same_dtype(out, x))


@kernel("exp_grad", place=BOTH, dtypes=NUMBERS)
def exp_grad(Out: Array, Out_grad: Array, *, xp: ArrayModule) -> Array:
    """Out@GRAD Out."""
    return Out_grad * conjugate(Out, xp)
