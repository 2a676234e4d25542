"""Kernels of p_norm and of its gradient."""

from __future__ import annotations

from oprack.kernel import Array, ArrayModule, kernel

from oprack_math.kernels._reduce import axes_of, kept
from oprack_math.kernels._sets import BOTH, REAL_FLOATS
from oprack_math.kernels.norm._family import norm_gradient, norm_of


@kernel("p_norm", place=BOTH, dtypes=REAL_FLOATS)
def p_norm(X: Array, *, porder: float, axis: int, keepdim: bool, asvector: bool, xp: ArrayModule) -> Array:
    """The norm of order porder."""
    return norm_of(X, porder, axes_of(X.ndim, [axis], asvector), keepdim, xp)


@kernel("p_norm_grad", place=BOTH, dtypes=REAL_FLOATS)
def p_norm_grad(
    X: Array, Out: Array, Out_grad: Array, *, porder: float, axis: int, epsilon: float, asvector: bool, xp: ArrayModule
) -> Array:
    """Out@GRAD sign(X) |X|^(p-1) / (Out^(p-1) + epsilon)."""
    axes = axes_of(X.ndim, [axis], asvector)
    return norm_gradient(X, kept(Out, X.shape, axes), kept(Out_grad, X.shape, axes), porder, epsilon, xp)
