"""Kernels of l1_norm and of its gradient."""

from __future__ import annotations

from oprack.kernel import Array, ArrayModule, kernel

from oprack_math.kernels._reduce import sum_over
from oprack_math.kernels._sets import BOTH, REAL_FLOATS


@kernel("l1_norm", place=BOTH, dtypes=REAL_FLOATS)
def l1_norm(X: Array, *, xp: ArrayModule) -> Array:
    """Sum of the sizes of all elements."""
    return xp.asarray(sum_over(xp.abs(X), None, False))


@kernel("l1_norm_grad", place=BOTH, dtypes=REAL_FLOATS)
def l1_norm_grad(X: Array, Out_grad: Array, *, xp: ArrayModule) -> Array:
    """Out@GRAD sign(X)."""
    return xp.sign(X) * Out_grad.reshape(())
