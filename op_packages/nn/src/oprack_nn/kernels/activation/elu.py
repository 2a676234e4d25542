"""Kernels of elu and its gradients."""

from __future__ import annotations

from oprack.kernel import Array, ArrayModule, kernel

from oprack_nn.kernels.activation._family import BOTH, REALS, negative_part


@kernel("elu", place=BOTH, dtypes=REALS)
def elu(X: Array, *, alpha: float, xp: ArrayModule) -> Array:
    return xp.where(X >= 0, X, X.dtype.type(alpha) * xp.expm1(negative_part(X, xp)))


@kernel("elu_grad", place=BOTH, dtypes=REALS)
def elu_grad(X: Array, Out_grad: Array, Out: Array, *, alpha: float, xp: ArrayModule) -> Array:
    return xp.where(X > 0, Out_grad, Out_grad * (Out + X.dtype.type(alpha)))


@kernel("elu_grad_grad", place=BOTH, dtypes=REALS)
def elu_grad_grad(
    X: Array, grad_out: Array, grad_x_grad: Array, *, alpha: float, xp: ArrayModule
) -> tuple[Array, Array]:
    slope = X.dtype.type(alpha) * xp.exp(negative_part(X, xp)) * grad_x_grad
    return xp.where(X > 0, X.dtype.type(0), slope * grad_out), xp.where(X > 0, grad_x_grad, slope)
