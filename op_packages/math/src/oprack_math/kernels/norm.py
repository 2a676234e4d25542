"""Kernels of norms."""

from __future__ import annotations

import math

from oprack.kernel import kernel
from oprack.types import FLOATS, HALF_FLOATS

from oprack_math.kernels._broadcast import BOTH, accumulator
from oprack_math.kernels._reduce import axes_of, kept

REAL = FLOATS | HALF_FLOATS


def _sum(x, axes, keep):
    return x.sum(axis=axes, dtype=accumulator(x.dtype), keepdims=keep).astype(x.dtype, copy=False)


@kernel("logsumexp", place=BOTH, dtypes=REAL)
def logsumexp(X, *, axis, keepdim, reduce_all, xp):
    """ln of the sum of e^X; the greatest element is taken out first."""
    axes = axes_of(X.ndim, axis, reduce_all)
    if not X.size:
        return xp.log(_sum(xp.exp(X), axes, keepdim))
    top = X.max(axis=axes, keepdims=True)
    top = xp.where(xp.isfinite(top), top, X.dtype.type(0))
    total = xp.log(_sum(xp.exp(X - top), axes, True)) + top
    return total if keepdim else xp.squeeze(total, axis=axes)


@kernel("logsumexp_grad", place=BOTH, dtypes=REAL)
def logsumexp_grad(X, Out, Out_grad, *, axis, reduce_all, xp):
    """Out@GRAD e^(X - Out)."""
    axes = axes_of(X.ndim, axis, reduce_all)
    return kept(Out_grad, X.shape, axes) * xp.exp(X - kept(Out, X.shape, axes))


@kernel("p_norm", place=BOTH, dtypes=REAL)
def p_norm(X, *, porder, axis, keepdim, asvector, xp):
    """The norm of order porder."""
    axes = axes_of(X.ndim, [axis], asvector)
    if porder == 0:
        return _sum((X != 0).astype(X.dtype), axes, keepdim)
    if porder == 2:
        return xp.sqrt(_sum(X * X, axes, keepdim))
    size = xp.abs(X)
    if math.isinf(porder):
        return (size.max if porder > 0 else size.min)(axis=axes, keepdims=keepdim)
    if porder == 1:
        return _sum(size, axes, keepdim)
    return xp.power(_sum(xp.power(size, X.dtype.type(porder)), axes, keepdim), X.dtype.type(1 / porder))


@kernel("p_norm_grad", place=BOTH, dtypes=REAL)
def p_norm_grad(X, Out, Out_grad, *, porder, axis, epsilon, asvector, xp):
    """Out@GRAD sign(X) |X|^(p-1) / (Out^(p-1) + epsilon)."""
    axes = axes_of(X.ndim, [axis], asvector)
    if porder == 0:
        return xp.zeros_like(X)
    gradient, norm = kept(Out_grad, X.shape, axes), kept(Out, X.shape, axes)
    if math.isinf(porder):
        return gradient * xp.sign(X) * (xp.abs(X) == norm)
    power, epsilon = X.dtype.type(porder - 1), X.dtype.type(epsilon)
    if porder == 1:
        return gradient * xp.sign(X)
    if porder == 2:
        return X * (gradient / (norm + epsilon))
    return xp.power(xp.abs(X), power) * xp.sign(X) * (gradient / (xp.power(norm, power) + epsilon))


@kernel("frobenius_norm", place=BOTH, dtypes=REAL)
def frobenius_norm(X, *, dim, keep_dim, reduce_all, xp):
    """Square root of the sum of squares."""
    return xp.sqrt(_sum(X * X, axes_of(X.ndim, dim, reduce_all), keep_dim))


@kernel("frobenius_norm_grad", place=BOTH, dtypes=REAL)
def frobenius_norm_grad(X, Out_grad, Out, *, dim, reduce_all, xp):
    """Out@GRAD X / (Out + 1e-12), so that the norm 0 gives 0."""
    axes = axes_of(X.ndim, dim, reduce_all)
    return X * kept(Out_grad / (Out + Out.dtype.type(1e-12)), X.shape, axes)


@kernel("squared_l2_norm", place=BOTH, dtypes=REAL)
def squared_l2_norm(X, *, xp):
    """Sum of squares, shape [1]."""
    flat = X.reshape(-1)
    if X.dtype.itemsize == 2:
        flat = flat.astype(xp.float32)
    return xp.dot(flat, flat).astype(X.dtype).reshape(1)


@kernel("squared_l2_norm_grad", place=BOTH, dtypes=REAL)
def squared_l2_norm_grad(X, Out_grad, *, xp):
    """2 Out@GRAD X."""
    return X * (Out_grad.reshape(()) * X.dtype.type(2))
