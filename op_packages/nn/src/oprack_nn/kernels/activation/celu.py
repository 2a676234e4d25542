"""Kernels of celu and its gradients."""

from __future__ import annotations

from oprack.kernel import Array, ArrayModule, kernel

from oprack_nn.kernels.activation._family import BOTH, REALS, negative_part


@kernel("celu", place=BOTH, dtypes=REALS)
def celu(X: Array, *, alpha: float, xp: ArrayModule) -> Array:
    kind = X.dtype.type
    low = kind(alpha) * xp.expm1(_toward(X, alpha, xp))
    return xp.maximum(X, kind(0)) + xp.minimum(low, kind(0))


@kernel("celu_grad", place=BOTH, dtypes=REALS)
def celu_grad(X: Array, Out_grad: Array, *, alpha: float, xp: ArrayModule) -> Array:
    return xp.where(X > 0, Out_grad, Out_grad * xp.exp(_toward(X, alpha, xp)))


@kernel("celu_grad_grad", place=BOTH, dtypes=REALS)
def celu_grad_grad(
    X: Array, grad_out: Array, grad_x_grad: Array, *, alpha: float, xp: ArrayModule
) -> tuple[Array, Array]:
    kind = X.dtype.type
    slope = grad_x_grad * xp.exp(_toward(X, alpha, xp))
    return xp.where(X > 0, kind(0), slope * grad_out / kind(alpha)), xp.where(X > 0, grad_x_grad, slope)


def _toward(x: Array, alpha: float, xp: ArrayModule) -> Array:
    """x / alpha where x <= 0, else 0."""
    return negative_part(x, xp) / x.dtype.type(alpha)
