"""Kernels of swish and its gradient."""

from __future__ import annotations

from oprack.kernel import Array, ArrayModule, kernel

from oprack_nn.kernels._smooth import sigmoid as logistic
from oprack_nn.kernels.activation._family import BOTH, REALS


@kernel("swish", place=BOTH, dtypes=REALS)
def swish(X: Array, *, beta: float, xp: ArrayModule) -> Array:
    return X * logistic(X * X.dtype.type(beta), xp)


@kernel("swish_grad", place=BOTH, dtypes=REALS)
def swish_grad(X: Array, Out_grad: Array, *, beta: float, xp: ArrayModule) -> Array:
    kind = X.dtype.type
    scaled = X * kind(beta)
    s = logistic(scaled, xp)
    return Out_grad * s * (kind(1) + scaled * (kind(1) - s))
