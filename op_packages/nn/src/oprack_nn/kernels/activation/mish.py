"""Kernels of mish and its gradient."""

from __future__ import annotations

from oprack.kernel import Array, ArrayModule, kernel

from oprack_nn.kernels._smooth import sigmoid as logistic
from oprack_nn.kernels._smooth import softplus as log1pexp
from oprack_nn.kernels.activation._family import BOTH, REALS


@kernel("mish", place=BOTH, dtypes=REALS)
def mish(X: Array, *, threshold: float, xp: ArrayModule) -> Array:
    return X * xp.tanh(_linear_above(X, threshold, log1pexp(X, xp), xp))


@kernel("mish_grad", place=BOTH, dtypes=REALS)
def mish_grad(X: Array, Out_grad: Array, *, threshold: float, xp: ArrayModule) -> Array:
    kind = X.dtype.type
    t = xp.tanh(_linear_above(X, threshold, log1pexp(X, xp), xp))
    slope = xp.where(X > threshold, kind(1), logistic(X, xp))
    return Out_grad * (t + X * (kind(1) - t * t) * slope)


def _linear_above(x: Array, threshold: float, y: Array, xp: ArrayModule) -> Array:
    return xp.where(x > threshold, x, y)
