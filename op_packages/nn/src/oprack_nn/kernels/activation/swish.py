"""Kernels of swish and its gradient."""

from __future__ import annotations

from oprack.kernel import kernel

from oprack_nn.kernels._smooth import sigmoid as logistic
from oprack_nn.kernels.activation._family import BOTH, REALS


@kernel("swish", place=BOTH, dtypes=REALS)
def swish(X, *, beta, xp):
    return X * logistic(X * X.dtype.type(beta), xp)


@kernel("swish_grad", place=BOTH, dtypes=REALS)
def swish_grad(X, Out_grad, *, beta, xp):
    kind = X.dtype.type
    scaled = X * kind(beta)
    s = logistic(scaled, xp)
    return Out_grad * s * (kind(1) + scaled * (kind(1) - s))
