"""Kernels of elementwise_div, with gradients to second order."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from oprack.kernel import Array, ArrayModule, KernelContext, KernelSpecialization, kernel
from oprack.types import BOOL

from oprack_math.kernels._broadcast import align, broadcasting, sum_to
from oprack_math.kernels._numeric import conjugate, divide
from oprack_math.kernels._sets import BOTH, NUMBERS
from oprack_math.kernels.elementwise._family import or_zeros, require_divisor


def _divide_floats(call: KernelSpecialization) -> Callable[..., Any] | None:
    """Floats and complex numbers need none of the rules for integers."""
    return broadcasting("divide")(call) if call.dtypes["X"][0].kind in "fc" else None


@kernel("elementwise_div", place=BOTH, dtypes=NUMBERS | BOOL, specialize=_divide_floats)
def elementwise_div(X: Array, Y: Array, *, axis: int, xp: ArrayModule) -> Array:
    """X / Y."""
    require_divisor(Y, "elementwise_div", xp)
    x, y = align(X, Y, axis, "elementwise_div")
    return divide(x, y, xp)


@kernel("elementwise_div_grad", place=BOTH, dtypes=NUMBERS | BOOL)
def elementwise_div_grad(
    Out_grad: Array, X: Array, Y: Array, Out: Array, *, axis: int, ctx: KernelContext, xp: ArrayModule
) -> tuple[Array | None, Array | None]:
    """Out@GRAD / Y and -Out@GRAD * Out / Y, conjugated for complex numbers."""
    x, y = align(X, Y, axis, "elementwise_div_grad")
    dx = sum_to(divide(Out_grad, conjugate(y, xp), xp), x, X) if ctx.wants("X@GRAD") else None
    dy = None
    if ctx.wants("Y@GRAD"):
        product = divide(Out_grad * conjugate(Out, xp), conjugate(y, xp), xp)
        dy = sum_to(product if product.dtype.kind == "b" else -product, y, Y)
    return dx, dy


@kernel("elementwise_div_grad_grad", place=BOTH, dtypes=NUMBERS)
def elementwise_div_grad_grad(
    Y: Array,
    Out: Array,
    DX: Array | None = None,
    DDX: Array | None = None,
    DDY: Array | None = None,
    *,
    axis: int,
    ctx: KernelContext,
    xp: ArrayModule,
) -> dict[str, Array]:
    """(DDX - Out DDY) / Y, and what follows for Y and Out; every absent gradient counts as zero."""
    y = align(Y, Out, axis, "elementwise_div_grad_grad")[0]
    x_shape = next((a for a in (DDX, DX) if a is not None), Out)
    x = align(x_shape, Out, axis, "elementwise_div_grad_grad")[0]
    dx, ddx, ddy = or_zeros(DX, x, xp), or_zeros(DDX, x, xp), or_zeros(DDY, y, xp)
    inner = ddx - Out * ddy
    result = {}
    if ctx.wants("DDOut"):
        result["DDOut"] = divide(inner, y, xp)
    if ctx.wants("Y@GRAD"):
        result["Y_grad"] = sum_to(divide(-dx * inner, y, xp), y, Y)
    if ctx.wants("DOut"):
        result["DOut"] = xp.broadcast_to(-dx * ddy, Out.shape).copy()
    return result
