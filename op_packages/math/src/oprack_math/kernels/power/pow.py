"""Kernels of pow and its gradients."""

from __future__ import annotations

import math

from oprack.kernel import Array, ArrayModule, KernelContext, kernel

from oprack_math.kernels._sets import BOTH, REAL


def _exponent(x: Array, tensor: Array | None, factor: float) -> float:
    """The exponent as a Python number; a tensor is small and, on a GPU, waits for the device."""
    value = factor if tensor is None else float(tensor.reshape(-1)[0])
    return math.trunc(value) if x.dtype.kind in "iu" else value


def _derivative(x: Array, f: float, order: int, xp: ArrayModule) -> Array:
    """The derivative of x^f of that order; zeros where its constant factor is 0, also at x = 0."""
    constant = math.prod(f - i for i in range(order))
    if constant == 0:
        return xp.zeros_like(x)
    power = f - order
    if x.dtype.kind in "iu":
        raised = xp.power(x.astype(xp.float64), float(power)).astype(x.dtype) if power < 0 else xp.power(x, power)
    elif power == 2:
        raised = xp.multiply(x, x)
    else:
        raised = xp.power(x, x.dtype.type(power))
    return raised if constant == 1 else raised * x.dtype.type(constant)


@kernel("pow", place=BOTH, dtypes=REAL)
def power(X: Array, FactorTensor: Array | None = None, *, factor: float, xp: ArrayModule) -> Array:
    """X to the power of factor."""
    return _derivative(X, _exponent(X, FactorTensor, factor), 0, xp)


@kernel("pow_grad", place=BOTH, dtypes=REAL)
def pow_grad(X: Array, Out_grad: Array, FactorTensor: Array | None = None, *, factor: float, xp: ArrayModule) -> Array:
    """Out@GRAD factor X^(factor-1)."""
    return Out_grad * _derivative(X, _exponent(X, FactorTensor, factor), 1, xp)


@kernel("pow_double_grad", place=BOTH, dtypes=REAL)
def pow_double_grad(
    X: Array,
    grad_out: Array,
    grad_x_grad: Array,
    FactorTensor: Array | None = None,
    *,
    factor: float,
    ctx: KernelContext,
    xp: ArrayModule,
) -> tuple[Array | None, Array | None]:
    """By X and by Out@GRAD."""
    f = _exponent(X, FactorTensor, factor)
    dx = grad_x_grad * grad_out * _derivative(X, f, 2, xp) if ctx.wants("X@GRAD") else None
    return dx, grad_x_grad * _derivative(X, f, 1, xp) if ctx.wants("grad_out@GRAD") else None


@kernel("pow_triple_grad", place=BOTH, dtypes=REAL)
def pow_triple_grad(
    X: Array,
    grad_out: Array,
    grad_grad_x: Array,
    FactorTensor: Array | None = None,
    grad_x_grad: Array | None = None,
    grad_grad_out_grad: Array | None = None,
    *,
    factor: float,
    xp: ArrayModule,
) -> dict[str, Array]:
    """By X, grad_out and grad_grad_x; an absent gradient counts as zero."""
    f, zero = _exponent(X, FactorTensor, factor), X.dtype.type(0)
    first, second, third = (_derivative(X, f, order, xp) for order in (1, 2, 3))
    a = zero if grad_x_grad is None else grad_x_grad
    b = zero if grad_grad_out_grad is None else grad_grad_out_grad
    return {
        "X@GRAD": a * grad_grad_x * grad_out * third + b * grad_grad_x * second,
        "grad_out@GRAD": a * grad_grad_x * second,
        "grad_grad_x@GRAD": a * grad_out * second + b * first,
    }
