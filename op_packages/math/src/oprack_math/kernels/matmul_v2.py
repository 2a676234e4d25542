"""Kernels of matmul_v2, bmm and dot, and their gradients."""

from __future__ import annotations

from oprack.kernel import kernel
from oprack.types import COMPLEX, FLOATS, HALF_FLOATS, INTEGERS

from oprack_math.kernels._broadcast import BOTH, accumulator, conjugate
from oprack_math.kernels._matmul import by_x, by_y, matmul, product

FLOATING = FLOATS | HALF_FLOATS | COMPLEX
NUMBERS = FLOATING | INTEGERS


@kernel("matmul_v2", place=BOTH, dtypes=NUMBERS)
def matmul_v2(X, Y, *, trans_x, trans_y, xp):
    """X Y."""
    return product(X, Y, trans_x, trans_y, xp)


@kernel("matmul_v2_grad", place=BOTH, dtypes=FLOATING)
def matmul_v2_grad(X, Y, Out_grad, *, trans_x, trans_y, ctx, xp):
    """Out@GRAD Y^T and X^T Out@GRAD."""
    dx = by_x(Out_grad, X, Y, trans_x, trans_y, xp) if ctx.wants("X@GRAD") else None
    return dx, by_y(Out_grad, X, Y, trans_x, trans_y, xp) if ctx.wants("Y@GRAD") else None


def _total(terms, like, xp):
    """Sum of the terms that are there; zeros when none is."""
    terms = [t for t in terms if t is not None]
    if not terms:
        return xp.zeros_like(like)
    return terms[0] if len(terms) == 1 else terms[0] + terms[1]


def double_grad(X, Y, d, e, f, trans_x, trans_y, wants, xp):
    """(by X, by Y, by Out@GRAD) of a product's gradients, for their gradients e and f; wants: which of the three."""
    flags = trans_x, trans_y, xp
    dx = dy = dd = None
    if wants[0]:
        dx = xp.zeros_like(X) if f is None else by_x(d, X, f, *flags)
    if wants[1]:
        dy = xp.zeros_like(Y) if e is None else by_y(d, e, Y, *flags)
    if wants[2]:
        terms = (None if e is None else product(e, Y, *flags), None if f is None else product(X, f, *flags))
        dd = _total(terms, d, xp)
    return dx, dy, dd


@kernel("matmul_v2_grad_grad", place=BOTH, dtypes=FLOATING)
def matmul_v2_grad_grad(X, Y, grad_out, grad_x_grad=None, grad_y_grad=None, *, trans_x, trans_y, ctx, xp):
    """By X, by Y and by Out@GRAD."""
    wants = [ctx.wants(s) for s in ("X@GRAD", "Y@GRAD", "grad_out@GRAD")]
    return double_grad(X, Y, grad_out, grad_x_grad, grad_y_grad, trans_x, trans_y, wants, xp)


@kernel("matmul_v2_triple_grad", place=BOTH, dtypes=FLOATING)
def matmul_v2_triple_grad(
    X,
    Y,
    grad_out,
    grad_grad_x=None,
    grad_grad_y=None,
    grad_x_grad=None,
    grad_y_grad=None,
    grad_grad_out_grad=None,
    *,
    trans_x,
    trans_y,
    ctx,
    xp,
):
    """By X, Y, grad_out, grad_grad_x and grad_grad_y."""
    d, e, f = grad_out, grad_grad_x, grad_grad_y
    a, b, c = grad_x_grad, grad_y_grad, grad_grad_out_grad

    def term(function, *operands):
        if any(o is None for o in operands):
            return None
        return function(*operands, trans_x, trans_y, xp)

    result = {}
    if ctx.wants("X@GRAD"):
        result["X@GRAD"] = _total([None if f is None else term(by_x, c, X, f)], X, xp)
    if ctx.wants("Y@GRAD"):
        result["Y@GRAD"] = _total([None if e is None else term(by_y, c, e, Y)], Y, xp)
    if ctx.wants("grad_out@GRAD"):
        result["grad_out@GRAD"] = _total([term(product, a, f), term(product, e, b)], d, xp)
    if ctx.wants("grad_grad_x@GRAD"):
        result["grad_grad_x@GRAD"] = _total([term(by_x, c, X, Y), term(by_x, d, X, b)], X, xp)
    if ctx.wants("grad_grad_y@GRAD"):
        result["grad_grad_y@GRAD"] = _total([term(by_y, c, X, Y), term(by_y, d, a, Y)], Y, xp)
    return result


@kernel("bmm", place=BOTH, dtypes=NUMBERS)
def bmm(X, Y, *, xp):
    """Products of a batch of matrices."""
    return matmul(X, Y, xp)


@kernel("bmm_grad", place=BOTH, dtypes=FLOATING)
def bmm_grad(X, Y, Out_grad, *, ctx, xp):
    """Out@GRAD Y^T and X^T Out@GRAD."""
    dx = by_x(Out_grad, X, Y, False, False, xp) if ctx.wants("X@GRAD") else None
    return dx, by_y(Out_grad, X, Y, False, False, xp) if ctx.wants("Y@GRAD") else None


@kernel("dot", place=BOTH, dtypes=NUMBERS)
def dot(X, Y, *, xp):
    """Sum of products along the last dim."""
    return (X * Y).sum(axis=-1, dtype=accumulator(X.dtype)).astype(X.dtype, copy=False)


@kernel("dot_grad", place=BOTH, dtypes=NUMBERS)
def dot_grad(X, Y, Out_grad, *, ctx, xp):
    """Out@GRAD times the other factor."""
    g = Out_grad.reshape(*X.shape[:-1], 1)
    dx = g * conjugate(Y, xp) if ctx.wants("X@GRAD") else None
    return dx, g * conjugate(X, xp) if ctx.wants("Y@GRAD") else None
