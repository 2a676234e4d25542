"""Kernels of the gradients of element-wise arithmetic, first order and higher."""

from __future__ import annotations

from oprack.kernel import kernel
from oprack.types import BOOL, COMPLEX, FLOATS, HALF_FLOATS, INTEGERS

from oprack_math.kernels._broadcast import BOTH, align, conjugate, sum_to
from oprack_math.kernels.elementwise import divide

REAL = FLOATS | HALF_FLOATS | INTEGERS


@kernel("elementwise_add_grad", place=BOTH, dtypes=REAL | COMPLEX, view=True)
def elementwise_add_grad(Out_grad, X, Y, *, axis, ctx):
    """Out@GRAD for both; X@GRAD is a view of it where X was not broadcast."""
    x, y = align(X, Y, axis, "elementwise_add_grad")
    dx = sum_to(Out_grad, x, X) if ctx.wants("X@GRAD") else None
    if not ctx.wants("Y@GRAD"):
        return dx, None
    dy = sum_to(Out_grad, y, Y)
    return dx, dy.copy() if Out_grad.shape == y.shape else dy


@kernel("elementwise_sub_grad", place=BOTH, dtypes=REAL | COMPLEX, view=True)
def elementwise_sub_grad(Out_grad, X, Y, *, axis, ctx, xp):
    """Out@GRAD and its negative; X@GRAD is a view of it where X was not broadcast."""
    x, y = align(X, Y, axis, "elementwise_sub_grad")
    dx = sum_to(Out_grad, x, X) if ctx.wants("X@GRAD") else None
    return dx, xp.negative(sum_to(Out_grad, y, Y)) if ctx.wants("Y@GRAD") else None


@kernel("elementwise_mul_grad", place=BOTH, dtypes=REAL | COMPLEX | BOOL)
def elementwise_mul_grad(Out_grad, X, Y, *, axis, ctx, xp):
    """Out@GRAD times the conjugate of the other input."""
    x, y = align(X, Y, axis, "elementwise_mul_grad")
    dx = sum_to(Out_grad * conjugate(y, xp), x, X) if ctx.wants("X@GRAD") else None
    return dx, sum_to(Out_grad * conjugate(x, xp), y, Y) if ctx.wants("Y@GRAD") else None


@kernel("elementwise_div_grad", place=BOTH, dtypes=REAL | COMPLEX | BOOL)
def elementwise_div_grad(Out_grad, X, Y, Out, *, axis, ctx, xp):
    """Out@GRAD / Y and -Out@GRAD * Out / Y, conjugated for complex numbers."""
    x, y = align(X, Y, axis, "elementwise_div_grad")
    dx = sum_to(divide(Out_grad, conjugate(y, xp), xp), x, X) if ctx.wants("X@GRAD") else None
    dy = None
    if ctx.wants("Y@GRAD"):
        product = divide(Out_grad * conjugate(Out, xp), conjugate(y, xp), xp)
        dy = sum_to(product if product.dtype.kind == "b" else -product, y, Y)
    return dx, dy


@kernel("elementwise_max_grad", place=BOTH, dtypes=REAL)
def elementwise_max_grad(Out_grad, X, Y, *, axis, ctx, xp):
    """Out@GRAD goes to X where it is greater, else to Y."""
    x, y = align(X, Y, axis, "elementwise_max_grad")
    return _route(Out_grad, xp.greater, xp.less_equal, X, Y, x, y, ctx, xp)


@kernel("elementwise_min_grad", place=BOTH, dtypes=REAL)
def elementwise_min_grad(Out_grad, X, Y, *, axis, ctx, xp):
    """Out@GRAD goes to X where it is smaller, else to Y."""
    x, y = align(X, Y, axis, "elementwise_min_grad")
    return _route(Out_grad, xp.less, xp.greater_equal, X, Y, x, y, ctx, xp)


def _route(gradient, to_x, to_y, X, Y, x, y, ctx, xp):
    # NaN satisfies neither test, so its gradient goes nowhere
    zero = xp.zeros((), gradient.dtype)
    dx = sum_to(xp.where(to_x(x, y), gradient, zero), x, X) if ctx.wants("X@GRAD") else None
    return dx, sum_to(xp.where(to_y(x, y), gradient, zero), y, Y) if ctx.wants("Y@GRAD") else None


@kernel("elementwise_pow_grad", place=BOTH, dtypes=REAL)
def elementwise_pow_grad(Out_grad, X, Y, *, axis, ctx, xp):
    """Y X^(Y-1) and X^Y ln X; integers through float64."""
    x, y = align(X, Y, axis, "elementwise_pow_grad")
    dtype, g = X.dtype, Out_grad
    if dtype.kind in "iu":
        g, x, y = (a.astype(xp.float64) for a in (g, x, y))
    one = y.dtype.type(1)
    dx = sum_to((g * y * xp.power(x, y - one)).astype(dtype, copy=False), x, X) if ctx.wants("X@GRAD") else None
    dy = sum_to((g * xp.power(x, y) * xp.log(x)).astype(dtype, copy=False), y, Y) if ctx.wants("Y@GRAD") else None
    return dx, dy


@kernel("elementwise_add_grad_grad", place=BOTH, dtypes=REAL | COMPLEX)
def elementwise_add_grad_grad(Y, DOut, DDX=None, DDY=None, *, axis, xp):
    """DDX + DDY in the shape of DOut."""
    return _combine(DDX, DDY, DOut, Y, axis, xp, xp.add)


@kernel("elementwise_sub_grad_grad", place=BOTH, dtypes=REAL | COMPLEX)
def elementwise_sub_grad_grad(Y, DOut, DDX=None, DDY=None, *, axis, xp):
    """DDX - DDY in the shape of DOut."""
    return _combine(DDX, DDY, DOut, Y, axis, xp, xp.subtract)


def _combine(ddx, ddy, dout, Y, axis, xp, function):
    zero = xp.zeros((), dout.dtype)
    # an absent operand is a zero of the output's rank, so that `axis` still says where the other one lies
    x = zero if ddx is None else align(ddx, dout, axis)[0]
    y = zero if ddy is None else align(ddy, dout, axis)[0]
    result = function(x, y)
    return result if result.shape == dout.shape else xp.broadcast_to(result, dout.shape).copy()


@kernel("elementwise_add_triple_grad", place=BOTH, dtypes=REAL | COMPLEX)
def elementwise_add_triple_grad(D_DDOut, DDX=None, DDY=None, *, axis, ctx):
    """D_DDOut for both, summed where they were broadcast."""

    def back(slot, operand):
        if operand is None or not ctx.wants(slot):
            return None
        x = align(operand, D_DDOut, axis)[0]
        result = sum_to(D_DDOut, x, operand)
        return result.copy() if D_DDOut.shape == x.shape else result

    return {"D_DDX": back("D_DDX", DDX), "D_DDY": back("D_DDY", DDY)}


@kernel("elementwise_mul_grad_grad", place=BOTH, dtypes=REAL | COMPLEX | BOOL)
def elementwise_mul_grad_grad(X, Y, DOut, DDX=None, DDY=None, *, axis, ctx, xp):
    """DOut DDY, DOut DDX, and DDX Y + X DDY."""
    x, y = align(X, Y, axis, "elementwise_mul_grad_grad")
    ddx, ddy = _second(DDX, x, xp), _second(DDY, y, xp)
    result = {}
    if ctx.wants("X@GRAD"):
        result["X_grad"] = sum_to(DOut * conjugate(ddy, xp), x, X)
    if ctx.wants("Y@GRAD"):
        result["Y_grad"] = sum_to(DOut * conjugate(ddx, xp), y, Y)
    if ctx.wants("DDOut"):
        result["DDOut"] = ddx * y + x * ddy
    return result


def _second(given, aligned_like, xp):
    return xp.zeros_like(aligned_like) if given is None else given.reshape(aligned_like.shape)


@kernel("elementwise_mul_triple_grad", place=BOTH, dtypes=REAL | COMPLEX | BOOL)
def elementwise_mul_triple_grad(X, Y, DOut, DDX=None, DDY=None, D_DX=None, D_DY=None, D_DDOut=None, *, axis, ctx, xp):
    """See the definition; every absent gradient counts as zero."""
    x, y = align(X, Y, axis, "elementwise_mul_triple_grad")
    ddx, ddy = _second(DDX, x, xp), _second(DDY, y, xp)
    ddx_grad, ddy_grad = _second(D_DX, x, xp), _second(D_DY, y, xp)
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


@kernel("elementwise_div_grad_grad", place=BOTH, dtypes=REAL | COMPLEX)
def elementwise_div_grad_grad(Y, Out, DX=None, DDX=None, DDY=None, *, axis, ctx, xp):
    """(DDX - Out DDY) / Y, and what follows for Y and Out; every absent gradient counts as zero."""
    y = align(Y, Out, axis, "elementwise_div_grad_grad")[0]
    x_shape = next((a for a in (DDX, DX) if a is not None), Out)
    x = align(x_shape, Out, axis, "elementwise_div_grad_grad")[0]
    dx, ddx, ddy = _second(DX, x, xp), _second(DDX, x, xp), _second(DDY, y, xp)
    inner = ddx - Out * ddy
    result = {}
    if ctx.wants("DDOut"):
        result["DDOut"] = divide(inner, y, xp)
    if ctx.wants("Y@GRAD"):
        result["Y_grad"] = sum_to(divide(-dx * inner, y, xp), y, Y)
    if ctx.wants("DOut"):
        result["DOut"] = xp.broadcast_to(-dx * ddy, Out.shape).copy()
    return result
