"""Kernels of matmul_v2, with gradients to third order."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from oprack.kernel import Array, ArrayModule, KernelContext, kernel

from oprack_math.kernels._sets import BOTH, FLOATING, NUMBERS
from oprack_math.kernels.matmul import by_x, by_y, double_grad, product, total


@kernel("matmul_v2", place=BOTH, dtypes=NUMBERS)
def matmul_v2(X: Array, Y: Array, *, trans_x: bool, trans_y: bool, xp: ArrayModule) -> Array:
    """X Y."""
    return product(X, Y, trans_x, trans_y, xp)


@kernel("matmul_v2_grad", place=BOTH, dtypes=FLOATING)
def matmul_v2_grad(
    X: Array, Y: Array, Out_grad: Array, *, trans_x: bool, trans_y: bool, ctx: KernelContext, xp: ArrayModule
) -> tuple[Array | None, Array | None]:
    """Out@GRAD Y^T and X^T Out@GRAD."""
    dx = by_x(Out_grad, X, Y, trans_x, trans_y, xp) if ctx.wants("X@GRAD") else None
    return dx, by_y(Out_grad, X, Y, trans_x, trans_y, xp) if ctx.wants("Y@GRAD") else None


@kernel("matmul_v2_grad_grad", place=BOTH, dtypes=FLOATING)
def matmul_v2_grad_grad(
    X: Array,
    Y: Array,
    grad_out: Array,
    grad_x_grad: Array | None = None,
    grad_y_grad: Array | None = None,
    *,
    trans_x: bool,
    trans_y: bool,
    ctx: KernelContext,
    xp: ArrayModule,
) -> tuple[Array | None, Array | None, Array | None]:
    """By X, by Y and by Out@GRAD."""
    wants = [ctx.wants(s) for s in ("X@GRAD", "Y@GRAD", "grad_out@GRAD")]
    return double_grad(X, Y, grad_out, grad_x_grad, grad_y_grad, trans_x, trans_y, wants, xp)


@kernel("matmul_v2_triple_grad", place=BOTH, dtypes=FLOATING)
def matmul_v2_triple_grad(
    X: Array,
    Y: Array,
    grad_out: Array,
    grad_grad_x: Array | None = None,
    grad_grad_y: Array | None = None,
    grad_x_grad: Array | None = None,
    grad_y_grad: Array | None = None,
    grad_grad_out_grad: Array | None = None,
    *,
    trans_x: bool,
    trans_y: bool,
    ctx: KernelContext,
    xp: ArrayModule,
) -> dict[str, Array]:
    """By X, Y, grad_out, grad_grad_x and grad_grad_y."""
    d, e, f = grad_out, grad_grad_x, grad_grad_y
    # Gradients of what matmul_v2_grad_grad computed: by_x(d, X, f), by_y(d, e, Y) and e Y + X f. Each is bilinear, so
    # its gradient by an operand is a product of the others.
    a, b, c = grad_x_grad, grad_y_grad, grad_grad_out_grad

    def term(function: Callable[..., Any], *operands: Array | None) -> Array | None:
        if any(o is None for o in operands):
            return None
        return function(*operands, trans_x, trans_y, xp)

    result = {}
    if ctx.wants("X@GRAD"):
        result["X@GRAD"] = total([None if f is None else term(by_x, c, X, f)], X, xp)
    if ctx.wants("Y@GRAD"):
        result["Y@GRAD"] = total([None if e is None else term(by_y, c, e, Y)], Y, xp)
    if ctx.wants("grad_out@GRAD"):
        result["grad_out@GRAD"] = total([term(product, a, f), term(product, e, b)], d, xp)
    if ctx.wants("grad_grad_x@GRAD"):
        result["grad_grad_x@GRAD"] = total([term(by_x, c, X, Y), term(by_x, d, X, b)], X, xp)
    if ctx.wants("grad_grad_y@GRAD"):
        result["grad_grad_y@GRAD"] = total([term(by_y, c, X, Y), term(by_y, d, a, Y)], Y, xp)
    return result
