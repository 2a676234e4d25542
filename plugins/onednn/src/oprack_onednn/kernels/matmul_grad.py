"""matmul_v2_grad and mul_grad, where no dim is broadcast but the batch of X over one matrix Y."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from oprack.kernel import Array, KernelContext

from oprack_onednn.kernels.declare import Limits, onednn_kernel
from oprack_onednn.kernels.matmul import product, row_major


def _matrix(a: Array, transposed: bool) -> Array:
    return a.swapaxes(-1, -2) if transposed else a


@onednn_kernel("matmul_v2_grad")
def matmul_v2_grad(
    X: Array, Y: Array, Out_grad: Array, *, trans_x: bool, trans_y: bool, ctx: KernelContext
) -> tuple[Array | None, Array]:
    x, y, g = X, Y, Out_grad
    if min(x.ndim, y.ndim) < 2 or g.size * x.shape[-1] < Limits.product:
        return _small(x, y, g, trans_x or trans_y, ctx)
    if g.ndim != x.ndim:
        return NotImplemented
    if y.ndim == 2 and x.ndim > 2 and not trans_x and x.flags.c_contiguous and g.flags.c_contiguous:
        # one matrix for the whole batch: the batch counts as rows
        x, g = x.reshape(-1, x.shape[-1]), g.reshape(-1, g.shape[-1])
    if x.shape[:-2] != y.shape[:-2]:
        return NotImplemented
    left, right = _matrix(x, trans_x), _matrix(y, trans_y)
    if g.shape != (*x.shape[:-2], left.shape[-2], right.shape[-1]):
        return NotImplemented
    return _gradients(left, right, g, trans_x, trans_y, X.shape, ctx)


def _gradients(
    left: np.ndarray,
    right: np.ndarray,
    g: np.ndarray,
    trans_x: bool,
    trans_y: bool,
    shape: tuple[int, ...],
    ctx: KernelContext,
) -> Any:
    """Gradients of the operands of left @ right that are wanted; `shape` is that of X."""
    dx = dy = None
    if ctx.wants("X@GRAD"):
        dx = product(right, _matrix(g, True)) if trans_x else product(g, _matrix(right, True))
        if dx is None:
            return NotImplemented
        dx = dx.reshape(shape)
    if ctx.wants("Y@GRAD"):
        dy = product(_matrix(g, True), left) if trans_y else product(_matrix(left, True), g)
        if dy is None:
            return NotImplemented
    return dx, dy


def _small(x: np.ndarray, y: np.ndarray, g: np.ndarray, transposed: bool, ctx: KernelContext) -> Any:
    """Gradients of two small matrices as they are: what the way to NumPy's kernel would end at."""
    if transposed or x.ndim != 2 or y.ndim != 2:
        return NotImplemented
    dx = np.matmul(g, y.T) if ctx.wants("X@GRAD") else None
    return dx, np.matmul(x.T, g) if ctx.wants("Y@GRAD") else None


@onednn_kernel("mul_grad")
def mul_grad(
    X: Array, Y: Array, Out_grad: Array, *, x_num_col_dims: int, y_num_col_dims: int, ctx: KernelContext
) -> tuple[Array, Array | None]:
    if not (X.size and Y.size):
        return NotImplemented
    X, Y, Out_grad = map(row_major, (X, Y, Out_grad))
    x = X.reshape(math.prod(X.shape[:x_num_col_dims]), -1)
    y = Y.reshape(math.prod(Y.shape[:y_num_col_dims]), -1)
    g = Out_grad.reshape(x.shape[0], y.shape[1])
    dx = product(g, y.T) if ctx.wants("X@GRAD") else None
    dy = product(x.T, g) if ctx.wants("Y@GRAD") else None
    if (dx is None and ctx.wants("X@GRAD")) or (dy is None and ctx.wants("Y@GRAD")):
        return NotImplemented
    return dx if dx is None else dx.reshape(X.shape), dy if dy is None else dy.reshape(Y.shape)
