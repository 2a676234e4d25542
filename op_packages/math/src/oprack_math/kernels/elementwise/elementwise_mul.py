"""Kernels of elementwise_mul, with gradients to third order."""

from __future__ import annotations

from oprack.errors import InvalidArgumentError
from oprack.kernel import Array, ArrayModule, KernelContext, kernel
from oprack.tensor import SelectedRows
from oprack.types import BOOL

from oprack_math.kernels._broadcast import align, broadcasting, sum_to
from oprack_math.kernels._numeric import conjugate
from oprack_math.kernels._rows import with_values
from oprack_math.kernels._sets import BOTH, NUMBERS
from oprack_math.kernels.elementwise._family import or_zeros


@kernel("elementwise_mul", place=BOTH, dtypes=NUMBERS | BOOL, specialize=broadcasting("multiply"))
def elementwise_mul(X: Array, Y: Array, *, axis: int, xp: ArrayModule) -> Array:
    """X * Y."""
    return xp.multiply(*align(X, Y, axis, "elementwise_mul"))


@kernel("elementwise_mul", place=BOTH, dtypes=NUMBERS | BOOL)
def elementwise_mul_rows(X: SelectedRows, Y: Array, *, xp: ArrayModule) -> SelectedRows:
    """Every value of X times the one element of Y."""
    if Y.size != 1:
        raise InvalidArgumentError(
            f"op elementwise_mul: X is SelectedRows and Y has shape {list(Y.shape)}; expected one element in Y"
        )
    return with_values(X, xp.multiply(X.value, Y.reshape(())))


@kernel("elementwise_mul_grad", place=BOTH, dtypes=NUMBERS | BOOL)
def elementwise_mul_grad(
    Out_grad: Array, X: Array, Y: Array, *, axis: int, ctx: KernelContext, xp: ArrayModule
) -> tuple[Array | None, Array | None]:
    """Out@GRAD times the conjugate of the other input."""
    x, y = align(X, Y, axis, "elementwise_mul_grad")
    dx = sum_to(Out_grad * conjugate(y, xp), x, X) if ctx.wants("X@GRAD") else None
    return dx, sum_to(Out_grad * conjugate(x, xp), y, Y) if ctx.wants("Y@GRAD") else None


@kernel("elementwise_mul_grad_grad", place=BOTH, dtypes=NUMBERS | BOOL)
def elementwise_mul_grad_grad(
    X: Array,
    Y: Array,
    DOut: Array,
    DDX: Array | None = None,
    DDY: Array | None = None,
    *,
    axis: int,
    ctx: KernelContext,
    xp: ArrayModule,
) -> dict[str, Array]:
    """DOut DDY, DOut DDX, and DDX Y + X DDY."""
    x, y = align(X, Y, axis, "elementwise_mul_grad_grad")
    ddx, ddy = or_zeros(DDX, x, xp), or_zeros(DDY, y, xp)
    result = {}
    if ctx.wants("X@GRAD"):
        result["X_grad"] = sum_to(DOut * conjugate(ddy, xp), x, X)
    if ctx.wants("Y@GRAD"):
        result["Y_grad"] = sum_to(DOut * conjugate(ddx, xp), y, Y)
    if ctx.wants("DDOut"):
        result["DDOut"] = ddx * y + x * ddy
    return result


@kernel("elementwise_mul_triple_grad", place=BOTH, dtypes=NUMBERS | BOOL)
def elementwise_mul_triple_grad(
    X: Array,
    Y: Array,
    DOut: Array,
    DDX: Array | None = None,
    DDY: Array | None = None,
    D_DX: Array | None = None,
    D_DY: Array | None = None,
    D_DDOut: Array | None = None,
    *,
    axis: int,
    ctx: KernelContext,
    xp: ArrayModule,
) -> dict[str, Array]:
    """See the definition; every absent gradient counts as zero."""
    x, y = align(X, Y, axis, "elementwise_mul_triple_grad")
    ddx, ddy = or_zeros(DDX, x, xp), or_zeros(DDY, y, xp)
    ddx_grad, ddy_grad = or_zeros(D_DX, x, xp), or_zeros(D_DY, y, xp)
    g = xp.zeros_like(DOut) if D_DDOut is None else D_DDOut
    conj = conjugate
    result = {}
    if ctx.wants("D_X"):
        result["D_X"] = sum_to(g * conj(ddy, xp), x, X)
    if ctx.wants("D_Y"):
        result["D_Y"] = sum_to(g * conj(ddx, xp), y, Y)
    if ctx.wants("D_DOut"):
        result["D_DOut"] = ddx_grad * ddy + ddy_grad * ddx
    if ctx.wants("D_DDX"):
        result["D_DDX"] = sum_to(conj(ddy_grad, xp) * DOut + g * conj(y, xp), x, X)
    if ctx.wants("D_DDY"):
        result["D_DDY"] = sum_to(conj(ddx_grad, xp) * DOut + g * conj(x, xp), y, Y)
    return result
