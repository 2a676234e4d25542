"""Kernels of sigmoid and its gradients."""

from __future__ import annotations

from oprack.kernel import Array, ArrayModule, kernel

from oprack_nn.kernels._smooth import sigmoid as logistic
from oprack_nn.kernels.activation import BOTH, NUMBERS


@kernel("sigmoid", place=BOTH, dtypes=NUMBERS)
def sigmoid(X: Array, *, out: Array | None = None, xp: ArrayModule) -> Array:
    return logistic(X, xp, out)


@kernel("sigmoid_grad", place=BOTH, dtypes=NUMBERS)
def sigmoid_grad(Out: Array, Out_grad: Array, *, xp: ArrayModule) -> Array:
    return Out_grad * xp.conj(Out - Out * Out)


@kernel("sigmoid_grad_grad", place=BOTH, dtypes=NUMBERS)
def sigmoid_grad_grad(Out: Array, fwd_grad_out: Array, grad_x_grad: Array, *, xp: ArrayModule) -> tuple[Array, Array]:
    kind = Out.dtype.type
    return (kind(1) - kind(2) * Out) * fwd_grad_out * grad_x_grad, (Out - Out * Out) * grad_x_grad


@kernel("sigmoid_triple_grad", place=BOTH, dtypes=NUMBERS)
def sigmoid_triple_grad(
    Out: Array,
    fwd_grad_out: Array,
    grad_grad_x: Array,
    grad_out_grad: Array,
    grad_grad_out_grad: Array | None = None,
    *,
    xp: ArrayModule,
) -> tuple[Array, ...]:
    kind = Out.dtype.type
    bend = kind(1) - kind(2) * Out
    by_out = kind(-2) * grad_out_grad * fwd_grad_out
    by_x = grad_out_grad * bend * fwd_grad_out
    if grad_grad_out_grad is not None:
        by_out = by_out + grad_grad_out_grad * bend
        by_x = by_x + grad_grad_out_grad * (Out - Out * Out)
    return by_out * grad_grad_x, grad_out_grad * bend * grad_grad_x, by_x
