"""Kernels of leaky_relu and its gradients."""

from __future__ import annotations

from oprack.kernel import Array, ArrayModule, kernel

from oprack_nn.kernels.activation._family import BOTH, REALS


@kernel("leaky_relu", place=BOTH, dtypes=REALS)
def leaky_relu(X: Array, *, alpha: float, xp: ArrayModule) -> Array:
    low = xp.empty_like(X)
    xp.multiply(X, X.dtype.type(alpha), out=low)
    # the maximum is the same for these slopes, and faster; infinity times 0 is no number
    return xp.maximum(X, low, out=low) if 0 < alpha <= 1 else xp.where(X > 0, X, low)


@kernel("leaky_relu_grad", place=BOTH, dtypes=REALS)
def leaky_relu_grad(X: Array, Out_grad: Array, *, alpha: float, xp: ArrayModule) -> Array:
    return xp.where(X > 0, Out_grad, Out_grad * X.dtype.type(alpha))


@kernel("leaky_relu_grad_grad", place=BOTH, dtypes=REALS)
def leaky_relu_grad_grad(grad_x_grad: Array, X: Array, *, alpha: float, xp: ArrayModule) -> Array:
    return xp.where(X > 0, grad_x_grad, grad_x_grad * X.dtype.type(alpha))
