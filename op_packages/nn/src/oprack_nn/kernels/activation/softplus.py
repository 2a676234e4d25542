"""Kernels of softplus and its gradients."""

from __future__ import annotations

from oprack.kernel import Array, ArrayModule, kernel

from oprack_nn.kernels._smooth import sigmoid as logistic
from oprack_nn.kernels._smooth import softplus as log1pexp
from oprack_nn.kernels.activation._family import BOTH, NUMBERS


@kernel("softplus", place=BOTH, dtypes=NUMBERS)
def softplus(X: Array, *, beta: float, threshold: float, xp: ArrayModule) -> Array:
    kind = X.dtype.type
    scaled = X * kind(beta)
    return xp.where(scaled > threshold, X, log1pexp(scaled, xp) / kind(beta))


@kernel("softplus_grad", place=BOTH, dtypes=NUMBERS)
def softplus_grad(X: Array, Out_grad: Array, *, beta: float, threshold: float, xp: ArrayModule) -> Array:
    scaled = X * X.dtype.type(beta)
    return xp.where(scaled > threshold, Out_grad, Out_grad * xp.conj(logistic(scaled, xp)))


@kernel("softplus_double_grad", place=BOTH, dtypes=NUMBERS)
def softplus_double_grad(
    X: Array, grad_out: Array, grad_x_grad: Array, *, beta: float, threshold: float, xp: ArrayModule
) -> tuple[Array, Array]:
    kind = X.dtype.type
    scaled = X * kind(beta)
    s = xp.where(scaled > threshold, kind(1), logistic(scaled, xp))
    return grad_x_grad * grad_out * kind(beta) * (s - s * s), grad_x_grad * s
