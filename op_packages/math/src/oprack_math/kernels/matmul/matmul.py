"""Kernels of matmul, with gradients to second order."""

from __future__ import annotations

from oprack.errors import UnimplementedError
from oprack.kernel import Array, ArrayModule, KernelContext, kernel

from oprack_math.kernels._sets import BOTH, REAL_FLOATS
from oprack_math.kernels.matmul._family import by_x, by_y, double_grad, matrices, product
from oprack_math.kernels.matmul._family import matmul as times


def _as_matrices(x: Array, y: Array, trans_x: bool, trans_y: bool) -> tuple[Array, Array, bool, bool]:
    """A transposed vector is a matrix; then nothing is left to transpose."""
    column, row = trans_x and x.ndim == 1, trans_y and y.ndim == 1
    return (
        x.reshape(-1, 1) if column else x,
        y.reshape(1, -1) if row else y,
        trans_x and not column,
        trans_y and not row,
    )


def _scaled(x: Array, alpha: float) -> Array:
    if x is None or alpha == 1:
        return x
    return x * x.dtype.type(alpha)


@kernel("matmul", place=BOTH, dtypes=REAL_FLOATS)
def matmul(
    X: Array, Y: Array, *, transpose_X: bool, transpose_Y: bool, alpha: float, head_number: int, xp: ArrayModule
) -> Array:
    """alpha X Y."""
    x, y, *flags = _as_matrices(X, Y, transpose_X, transpose_Y)
    if head_number == 1:
        return _scaled(product(x, y, *flags, xp), alpha)
    x, y = matrices(x, y, *flags)
    x = x.reshape(*x.shape[:-1], head_number, -1).swapaxes(-2, -3)
    y = y.reshape(*y.shape[:-2], head_number, -1, y.shape[-1])
    out = times(x, y, xp).swapaxes(-2, -3)
    return _scaled(out.reshape(*out.shape[:-2], -1), alpha)


def _one_head(head_number: int, op_type: str) -> None:
    if head_number != 1:
        raise UnimplementedError(
            f"op {op_type}: head_number is {head_number}; expected 1, since a product in heads has no gradient. "
            "Reshape and transpose the heads into batch dims instead"
        )


@kernel("matmul_grad", place=BOTH, dtypes=REAL_FLOATS)
def matmul_grad(
    X: Array,
    Y: Array,
    Out_grad: Array,
    *,
    transpose_X: bool,
    transpose_Y: bool,
    alpha: float,
    head_number: int,
    ctx: KernelContext,
    xp: ArrayModule,
) -> tuple[Array | None, Array | None]:
    """alpha Out@GRAD Y^T and alpha X^T Out@GRAD."""
    _one_head(head_number, "matmul_grad")
    x, y, *flags = _as_matrices(X, Y, transpose_X, transpose_Y)
    g = _scaled(Out_grad, alpha)
    dx = by_x(g, x, y, *flags, xp).reshape(X.shape) if ctx.wants("X@GRAD") else None
    return dx, by_y(g, x, y, *flags, xp).reshape(Y.shape) if ctx.wants("Y@GRAD") else None


@kernel("matmul_grad_grad", place=BOTH, dtypes=REAL_FLOATS)
def matmul_grad_grad(
    X: Array,
    Y: Array,
    DOut: Array,
    DDX: Array | None = None,
    DDY: Array | None = None,
    *,
    transpose_X: bool,
    transpose_Y: bool,
    alpha: float,
    head_number: int,
    ctx: KernelContext,
    xp: ArrayModule,
) -> tuple[Array | None, ...]:
    """By X, by Y and by Out@GRAD."""
    _one_head(head_number, "matmul_grad_grad")
    x, y, *flags = _as_matrices(X, Y, transpose_X, transpose_Y)
    e, f = (None if d is None else d.reshape(m.shape) for d, m in ((DDX, x), (DDY, y)))
    wants = [ctx.wants(s) for s in ("DX", "DY", "DDOut")]
    results = double_grad(x, y, DOut, e, f, *flags, wants, xp)
    return tuple(
        None if r is None else _scaled(r, alpha).reshape(a.shape) for r, a in zip(results, (X, Y, DOut), strict=True)
    )
