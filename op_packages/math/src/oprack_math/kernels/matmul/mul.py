"""Kernels of mul, with gradients to second order."""

from __future__ import annotations

import math

from oprack.kernel import Array, ArrayModule, KernelContext, kernel

from oprack_math.kernels._sets import BOTH, REAL_FLOATS
from oprack_math.kernels.matmul._family import double_grad
from oprack_math.kernels.matmul._family import matmul as times


def _flat(x: Array, columns: int) -> Array:
    return x.reshape(math.prod(x.shape[:columns]), math.prod(x.shape[columns:]))


@kernel("mul", place=BOTH, dtypes=REAL_FLOATS)
def mul(X: Array, Y: Array, *, x_num_col_dims: int, y_num_col_dims: int, xp: ArrayModule) -> Array:
    """The product of the flattened matrices."""
    out = times(_flat(X, x_num_col_dims), _flat(Y, y_num_col_dims), xp)
    return out.reshape(*X.shape[:x_num_col_dims], *Y.shape[y_num_col_dims:])


@kernel("mul_grad", place=BOTH, dtypes=REAL_FLOATS)
def mul_grad(
    X: Array,
    Y: Array,
    Out_grad: Array,
    *,
    x_num_col_dims: int,
    y_num_col_dims: int,
    ctx: KernelContext,
    xp: ArrayModule,
) -> tuple[Array | None, Array | None]:
    """Out@GRAD Y^T and X^T Out@GRAD."""
    x, y = _flat(X, x_num_col_dims), _flat(Y, y_num_col_dims)
    g = Out_grad.reshape(x.shape[0], y.shape[1])
    dx = times(g, y.T, xp).reshape(X.shape) if ctx.wants("X@GRAD") else None
    return dx, times(x.T, g, xp).reshape(Y.shape) if ctx.wants("Y@GRAD") else None


@kernel("mul_grad_grad", place=BOTH, dtypes=REAL_FLOATS)
def mul_grad_grad(
    X: Array,
    Y: Array,
    DOut: Array,
    DDX: Array | None = None,
    DDY: Array | None = None,
    *,
    x_num_col_dims: int,
    y_num_col_dims: int,
    ctx: KernelContext,
    xp: ArrayModule,
) -> tuple[Array | None, ...]:
    """By X, by Y and by Out@GRAD."""
    x, y = _flat(X, x_num_col_dims), _flat(Y, y_num_col_dims)
    e, f = (None if d is None else d.reshape(m.shape) for d, m in ((DDX, x), (DDY, y)))
    wants = [ctx.wants(s) for s in ("DX", "DY", "DDOut")]
    results = double_grad(x, y, DOut.reshape(x.shape[0], y.shape[1]), e, f, False, False, wants, xp)
    return tuple(None if r is None else r.reshape(a.shape) for r, a in zip(results, (X, Y, DOut), strict=True))
