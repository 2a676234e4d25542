"""Kernels of soft_relu and its gradient."""

from __future__ import annotations

from oprack.kernel import Array, ArrayModule, kernel

from oprack_nn.kernels._smooth import softplus as log1pexp
from oprack_nn.kernels.activation._family import BOTH, REALS


@kernel("soft_relu", place=BOTH, dtypes=REALS)
def soft_relu(X: Array, *, threshold: float, xp: ArrayModule) -> Array:
    kind = X.dtype.type
    return log1pexp(xp.minimum(xp.maximum(X, kind(-threshold)), kind(threshold)), xp)


@kernel("soft_relu_grad", place=BOTH, dtypes=REALS)
def soft_relu_grad(Out: Array, Out_grad: Array, *, threshold: float, xp: ArrayModule) -> Array:
    inside = (Out > -threshold) & (Out < threshold)
    return Out_grad * -xp.expm1(-Out) * inside
