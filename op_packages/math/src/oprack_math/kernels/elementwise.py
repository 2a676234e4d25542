"""Kernels of element-wise arithmetic with two inputs that broadcast."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from oprack.errors import InvalidArgumentError
from oprack.kernel import Array, ArrayModule, KernelContext, KernelSpecialization, kernel
from oprack.tensor import SelectedRows, ShapeOnly
from oprack.types import BOOL

from oprack_math.kernels._broadcast import align, broadcasting, sum_to, usable
from oprack_math.kernels._numeric import conjugate, divide
from oprack_math.kernels._rows import with_values
from oprack_math.kernels._sets import BOTH, NUMBERS, REAL, REAL_FLOATS


# shared ---------------------------------------------------------------------------------------------------------------
# What kernels of element-wise arithmetic share.
def require_divisor(y: Array, op_type: str, xp: ArrayModule) -> None:
    """Raise InvalidArgumentError for an integer divisor of 0; on a GPU the check would wait for the device."""
    if y.dtype.kind in "iub" and xp.__name__ == "numpy" and not y.all():
        raise InvalidArgumentError(
            f"op {op_type}: Y (shape {list(y.shape)}, {y.dtype}) holds a 0; expected divisors other than 0, since "
            "integers have no infinity. Cast both inputs to a float dtype to divide by 0"
        )


def route_gradient(
    gradient: Array,
    to_x: Callable[..., Any],
    to_y: Callable[..., Any],
    X: Array,
    Y: Array,
    x: Array,
    y: Array,
    ctx: KernelContext,
    xp: ArrayModule,
) -> tuple[Array | None, Array | None]:
    """The gradient to X where to_x(x, y) holds and to Y where to_y does, summed where they were broadcast."""
    # NaN satisfies neither test, so its gradient goes nowhere
    zero = xp.zeros((), gradient.dtype)
    dx = sum_to(xp.where(to_x(x, y), gradient, zero), x, X) if ctx.wants("X@GRAD") else None
    return dx, sum_to(xp.where(to_y(x, y), gradient, zero), y, Y) if ctx.wants("Y@GRAD") else None


def route_to_numbers(
    gradient: Array, to_x: Callable[..., Any], X: Array, Y: Array, ctx: KernelContext, xp: ArrayModule
) -> tuple[Array | None, Array | None]:
    """The gradient to X where to_x(X, Y) holds or Y is NaN, else to Y, summed where they were broadcast."""
    x, y = align(X, Y, -1)
    chosen = to_x(x, y) | (y != y)
    return route_gradient(gradient, lambda *_: chosen, lambda *_: ~chosen, X, Y, x, y, ctx, xp)


def combine_second(
    ddx: Array | None,
    ddy: Array | None,
    dout: ShapeOnly,
    Y: ShapeOnly,
    axis: int,
    xp: ArrayModule,
    function: Callable[..., Any],
) -> Array:
    """function of ddx and ddy, an absent one of which is zero, in the shape of dout."""
    zero = xp.zeros((), dout.dtype)
    # an absent operand is a zero of the output's rank, so that `axis` still says where the other one lies
    x = zero if ddx is None else align(ddx, dout, axis)[0]
    y = zero if ddy is None else align(ddy, dout, axis)[0]
    result = function(x, y)
    return result if result.shape == dout.shape else xp.broadcast_to(result, dout.shape).copy()


def or_zeros(given: Array | None, aligned_like: Array, xp: ArrayModule) -> Array:
    """`given` at the rank of aligned_like; zeros where it is absent."""
    return xp.zeros_like(aligned_like) if given is None else given.reshape(aligned_like.shape)


# copysign -------------------------------------------------------------------------------------------------------------
@kernel("copysign", place=BOTH, dtypes=REAL_FLOATS)
def copysign(x: Array, y: Array, *, xp: ArrayModule) -> Array:
    """The size of x with the sign of y."""
    return xp.copysign(*align(x, y, -1, "copysign"))


@kernel("copysign_grad", place=BOTH, dtypes=REAL_FLOATS)
def copysign_grad(
    x: Array, y: Array, out_grad: Array, *, ctx: KernelContext, xp: ArrayModule
) -> tuple[Array | None, Array | None]:
    """out@GRAD where both signs are equal, else its negative; nothing to y."""
    left, right = align(x, y, -1, "copysign_grad")
    dx = sum_to(out_grad * xp.sign(left) * xp.copysign(xp.ones_like(right), right), left, x)
    return dx if ctx.wants("x@GRAD") else None, xp.zeros_like(y) if ctx.wants("y@GRAD") else None


# elementwise_add ------------------------------------------------------------------------------------------------------
@kernel("elementwise_add", place=BOTH, dtypes=NUMBERS, specialize=broadcasting("add"))
def elementwise_add(X: Array, Y: Array, *, axis: int, out: Array | None = None, xp: ArrayModule) -> Array:
    """X + Y."""
    x, y = align(X, Y, axis, "elementwise_add")
    return xp.add(x, y, out=usable(out, x, y))


@kernel("elementwise_add_grad", place=BOTH, dtypes=NUMBERS, view=True)
def elementwise_add_grad(
    Out_grad: Array, X: ShapeOnly, Y: ShapeOnly, *, axis: int, ctx: KernelContext
) -> tuple[Array | None, Array | None]:
    """Out@GRAD for both, summed over broadcast dims; X@GRAD is a view of it where X was not broadcast."""
    x, y = align(X, Y, axis, "elementwise_add_grad")
    dx = sum_to(Out_grad, x, X) if ctx.wants("X@GRAD") else None
    if not ctx.wants("Y@GRAD"):
        return dx, None
    dy = sum_to(Out_grad, y, Y)
    # A copy instead of a view, so that X@GRAD and Y@GRAD do not share memory.
    return dx, dy.copy() if Out_grad.shape == y.shape else dy


@kernel("elementwise_add_grad_grad", place=BOTH, dtypes=NUMBERS)
def elementwise_add_grad_grad(
    Y: ShapeOnly, DOut: ShapeOnly, DDX: Array | None = None, DDY: Array | None = None, *, axis: int, xp: ArrayModule
) -> Array:
    """DDX + DDY in the shape of DOut."""
    return combine_second(DDX, DDY, DOut, Y, axis, xp, xp.add)


@kernel("elementwise_add_triple_grad", place=BOTH, dtypes=NUMBERS)
def elementwise_add_triple_grad(
    D_DDOut: Array, DDX: ShapeOnly | None = None, DDY: ShapeOnly | None = None, *, axis: int, ctx: KernelContext
) -> dict[str, Array | None]:
    """D_DDOut for both, summed where they were broadcast."""

    def back(slot: str, operand: ShapeOnly | None) -> Array | None:
        if operand is None or not ctx.wants(slot):
            return None
        x = align(operand, D_DDOut, axis)[0]
        result = sum_to(D_DDOut, x, operand)
        return result.copy() if D_DDOut.shape == x.shape else result

    return {"D_DDX": back("D_DDX", DDX), "D_DDY": back("D_DDY", DDY)}


# elementwise_div ------------------------------------------------------------------------------------------------------
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


# elementwise_floordiv -------------------------------------------------------------------------------------------------
@kernel("elementwise_floordiv", place=BOTH, dtypes=REAL)
def elementwise_floordiv(X: Array, Y: Array, *, axis: int, xp: ArrayModule) -> Array:
    """Floor of X / Y."""
    require_divisor(Y, "elementwise_floordiv", xp)
    return xp.floor_divide(*align(X, Y, axis, "elementwise_floordiv"))


# elementwise_fmax -----------------------------------------------------------------------------------------------------
@kernel("elementwise_fmax", place=BOTH, dtypes=REAL)
def elementwise_fmax(X: Array, Y: Array, *, xp: ArrayModule) -> Array:
    """The greater one; a number wins over NaN."""
    return xp.fmax(X, Y)


@kernel("elementwise_fmax_grad", place=BOTH, dtypes=REAL)
def elementwise_fmax_grad(
    Out_grad: Array, X: Array, Y: Array, *, ctx: KernelContext, xp: ArrayModule
) -> tuple[Array | None, Array | None]:
    """Out@GRAD goes to X where it is the greater one or both are equal, else to Y."""
    return route_to_numbers(Out_grad, xp.greater_equal, X, Y, ctx, xp)


# elementwise_fmin -----------------------------------------------------------------------------------------------------
@kernel("elementwise_fmin", place=BOTH, dtypes=REAL)
def elementwise_fmin(X: Array, Y: Array, *, xp: ArrayModule) -> Array:
    """The smaller one; a number wins over NaN."""
    return xp.fmin(X, Y)


@kernel("elementwise_fmin_grad", place=BOTH, dtypes=REAL)
def elementwise_fmin_grad(
    Out_grad: Array, X: Array, Y: Array, *, ctx: KernelContext, xp: ArrayModule
) -> tuple[Array | None, Array | None]:
    """Out@GRAD goes to X where it is the smaller one or both are equal, else to Y."""
    return route_to_numbers(Out_grad, xp.less_equal, X, Y, ctx, xp)


# elementwise_heaviside ------------------------------------------------------------------------------------------------
@kernel("elementwise_heaviside", place=BOTH, dtypes=REAL)
def elementwise_heaviside(X: Array, Y: Array, *, xp: ArrayModule) -> Array:
    """The step function, Y at the step."""
    return xp.where(X == 0, Y, (X > 0).astype(X.dtype))


@kernel("elementwise_heaviside_grad", place=BOTH, dtypes=REAL)
def elementwise_heaviside_grad(
    Out_grad: Array, X: Array, Y: Array, *, ctx: KernelContext, xp: ArrayModule
) -> tuple[Array | None, Array | None]:
    """Zeros for X, and for Y what went through at the step."""
    x, y = align(X, Y, -1)
    dy = sum_to(xp.where(x == 0, Out_grad, xp.zeros((), Out_grad.dtype)), y, Y) if ctx.wants("Y@GRAD") else None
    return xp.zeros_like(X) if ctx.wants("X@GRAD") else None, dy


# elementwise_max ------------------------------------------------------------------------------------------------------
@kernel("elementwise_max", place=BOTH, dtypes=REAL)
def elementwise_max(X: Array, Y: Array, *, axis: int, xp: ArrayModule) -> Array:
    """X where it is greater, else Y."""
    x, y = align(X, Y, axis, "elementwise_max")
    return xp.where(x > y, x, y)


@kernel("elementwise_max_grad", place=BOTH, dtypes=REAL)
def elementwise_max_grad(
    Out_grad: Array, X: Array, Y: Array, *, axis: int, ctx: KernelContext, xp: ArrayModule
) -> tuple[Array | None, Array | None]:
    """Out@GRAD goes to X where it is greater, else to Y."""
    x, y = align(X, Y, axis, "elementwise_max_grad")
    return route_gradient(Out_grad, xp.greater, xp.less_equal, X, Y, x, y, ctx, xp)


# elementwise_min ------------------------------------------------------------------------------------------------------
@kernel("elementwise_min", place=BOTH, dtypes=REAL)
def elementwise_min(X: Array, Y: Array, *, axis: int, xp: ArrayModule) -> Array:
    """X where it is smaller, else Y."""
    x, y = align(X, Y, axis, "elementwise_min")
    return xp.where(x < y, x, y)


@kernel("elementwise_min_grad", place=BOTH, dtypes=REAL)
def elementwise_min_grad(
    Out_grad: Array, X: Array, Y: Array, *, axis: int, ctx: KernelContext, xp: ArrayModule
) -> tuple[Array | None, Array | None]:
    """Out@GRAD goes to X where it is smaller, else to Y."""
    x, y = align(X, Y, axis, "elementwise_min_grad")
    return route_gradient(Out_grad, xp.less, xp.greater_equal, X, Y, x, y, ctx, xp)


# elementwise_mod ------------------------------------------------------------------------------------------------------
@kernel("elementwise_mod", place=BOTH, dtypes=REAL)
def elementwise_mod(X: Array, Y: Array, *, axis: int, out: Array | None = None, xp: ArrayModule) -> Array:
    """Remainder with the sign of Y."""
    require_divisor(Y, "elementwise_mod", xp)
    x, y = align(X, Y, axis, "elementwise_mod")
    return xp.remainder(x, y, out=usable(out, x, y))


# elementwise_mul ------------------------------------------------------------------------------------------------------
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


# elementwise_pow ------------------------------------------------------------------------------------------------------
@kernel("elementwise_pow", place=BOTH, dtypes=NUMBERS)
def elementwise_pow(X: Array, Y: Array, *, axis: int, xp: ArrayModule) -> Array:
    """X to the power of Y."""
    x, y = align(X, Y, axis, "elementwise_pow")
    if X.dtype.kind in "iu":
        if xp.__name__ == "numpy" and not (y < 0).any():
            return xp.power(x, y)  # exact, while float64 can't represent large integers
        # NumPy refuses negative exponents of integers, and CuPy would have to wait to find them: compute in float64.
        return xp.power(x.astype(xp.float64), y.astype(xp.float64)).astype(X.dtype)
    return xp.power(x, y)


@kernel("elementwise_pow_grad", place=BOTH, dtypes=NUMBERS)
def elementwise_pow_grad(
    Out_grad: Array, X: Array, Y: Array, *, axis: int, ctx: KernelContext, xp: ArrayModule
) -> tuple[Array | None, Array | None]:
    """Out@GRAD Y X^(Y-1) and Out@GRAD X^Y ln X; integers are computed in float64."""
    x, y = align(X, Y, axis, "elementwise_pow_grad")
    dtype, g = X.dtype, Out_grad
    if dtype.kind in "iu":
        g, x, y = (a.astype(xp.float64) for a in (g, x, y))
    one = y.dtype.type(1)
    dx = (
        sum_to((g * conjugate(y * xp.power(x, y - one), xp)).astype(dtype, copy=False), x, X)
        if ctx.wants("X@GRAD")
        else None
    )
    dy = (
        sum_to((g * conjugate(xp.power(x, y) * xp.log(x), xp)).astype(dtype, copy=False), y, Y)
        if ctx.wants("Y@GRAD")
        else None
    )
    return dx, dy


# elementwise_sub ------------------------------------------------------------------------------------------------------
@kernel("elementwise_sub", place=BOTH, dtypes=NUMBERS, specialize=broadcasting("subtract"))
def elementwise_sub(X: Array, Y: Array, *, axis: int, out: Array | None = None, xp: ArrayModule) -> Array:
    """X - Y."""
    x, y = align(X, Y, axis, "elementwise_sub")
    return xp.subtract(x, y, out=usable(out, x, y))


@kernel("elementwise_sub_grad", place=BOTH, dtypes=NUMBERS, view=True)
def elementwise_sub_grad(
    Out_grad: Array, X: ShapeOnly, Y: ShapeOnly, *, axis: int, ctx: KernelContext, xp: ArrayModule
) -> tuple[Array | None, Array | None]:
    """Out@GRAD and its negative; X@GRAD is a view of it where X was not broadcast."""
    x, y = align(X, Y, axis, "elementwise_sub_grad")
    dx = sum_to(Out_grad, x, X) if ctx.wants("X@GRAD") else None
    return dx, xp.negative(sum_to(Out_grad, y, Y)) if ctx.wants("Y@GRAD") else None


@kernel("elementwise_sub_grad_grad", place=BOTH, dtypes=NUMBERS)
def elementwise_sub_grad_grad(
    Y: ShapeOnly, DOut: ShapeOnly, DDX: Array | None = None, DDY: Array | None = None, *, axis: int, xp: ArrayModule
) -> Array:
    """DDX - DDY in the shape of DOut."""
    return combine_second(DDX, DDY, DOut, Y, axis, xp, xp.subtract)


# grad_add -------------------------------------------------------------------------------------------------------------
@kernel("grad_add", place=BOTH, dtypes=NUMBERS, specialize=broadcasting("add"))
def grad_add(X: Array, Y: Array, *, axis: int, xp: ArrayModule) -> Array:
    """X + Y."""
    return xp.add(*align(X, Y, axis, "grad_add"))


# minus ----------------------------------------------------------------------------------------------------------------
@kernel("minus", place=BOTH, dtypes=NUMBERS)
def minus(X: Array, Y: Array) -> Array:
    """X - Y."""
    return X - Y
