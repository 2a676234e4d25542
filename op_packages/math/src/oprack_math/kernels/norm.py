"""Kernels of norms and of what limits them."""

from __future__ import annotations

import math

from oprack.device import merged_rows
from oprack.kernel import Array, ArrayModule, KernelContext, kernel
from oprack.tensor import SelectedRows

from oprack_math.kernels._broadcast import align, sum_to
from oprack_math.kernels._numeric import rounded_once
from oprack_math.kernels._reduce import axes_of, kept, sum_over
from oprack_math.kernels._sets import BOTH, REAL_FLOATS


# clip -----------------------------------------------------------------------------------------------------------------
# Clipping by the norm, which clip_by_norm and dgc_clip_by_norm share.
def norm_clipped(x: Array, max_norm: float, xp: ArrayModule) -> Array:
    """x scaled to the norm max_norm if its own is greater."""
    norm = xp.sqrt(xp.sum(xp.square(x), dtype=x.dtype if x.dtype.itemsize > 2 else xp.float32)).astype(x.dtype)
    limit = x.dtype.type(max_norm)
    return x * xp.where(norm > limit, limit / norm, x.dtype.type(1))


# shared ---------------------------------------------------------------------------------------------------------------
# Norms of any order, and their gradients.
def norm_of(x: Array, order: float, axes: tuple[int, ...] | None, keep: bool, xp: ArrayModule) -> Array:
    """The norm over some dims; of order 0 the number of elements other than 0."""
    if order == 0:
        return sum_over((x != 0).astype(x.dtype), axes, keep)
    if order == 2:
        return xp.sqrt(sum_over(x * x, axes, keep))
    size = xp.abs(x)
    if math.isinf(order):
        return (size.max if order > 0 else size.min)(axis=axes, keepdims=keep)
    if order == 1:
        return sum_over(size, axes, keep)
    return xp.power(sum_over(xp.power(size, x.dtype.type(order)), axes, keep), x.dtype.type(1 / order))


def norm_gradient(x: Array, norm: Array, gradient: Array, order: float, epsilon: float, xp: ArrayModule) -> Array:
    """The gradient of norm_of, whose result and gradient have the reduced dims as 1; epsilon: added to the divisor."""
    if order == 0:
        return xp.zeros_like(x)
    if math.isinf(order):
        return gradient * xp.sign(x) * (xp.abs(x) == norm)
    power, epsilon = x.dtype.type(order - 1), x.dtype.type(epsilon)
    if order == 1:
        return gradient * xp.sign(x)
    if order == 2:
        return x * (gradient / (norm + epsilon))
    return xp.power(xp.abs(x), power) * xp.sign(x) * (gradient / (xp.power(norm, power) + epsilon))


# clip_by_norm ---------------------------------------------------------------------------------------------------------
@kernel("clip_by_norm", place=BOTH, dtypes=REAL_FLOATS)
def clip_by_norm(X: Array, *, max_norm: float, xp: ArrayModule) -> Array:
    """X scaled to the norm max_norm if its own is greater."""
    return norm_clipped(X, max_norm, xp)


@kernel("clip_by_norm", place=BOTH, dtypes=REAL_FLOATS, deterministic={"cpu"})
def clip_by_norm_rows(X: SelectedRows, *, max_norm: float, xp: ArrayModule) -> SelectedRows:
    """Rows that are listed twice are added first."""
    merged = merged_rows(X, xp)
    merged.value = norm_clipped(merged.value, max_norm, xp)
    return merged


# dgc_clip_by_norm -----------------------------------------------------------------------------------------------------
@kernel("dgc_clip_by_norm", place=BOTH, dtypes=REAL_FLOATS)
def dgc_clip_by_norm(
    current_step: Array, X: Array, *, rampup_begin_step: float, max_norm: float, xp: ArrayModule
) -> Array:
    """X, clipped once the ramp has begun."""
    if int(rampup_begin_step) < 0 or int(current_step.reshape(-1)[0]) < int(rampup_begin_step):
        return X.copy()
    return norm_clipped(X, max_norm, xp)


# dist -----------------------------------------------------------------------------------------------------------------
@kernel("dist", place=BOTH, dtypes=REAL_FLOATS)
@rounded_once
def dist(X: Array, Y: Array, *, p: float, xp: ArrayModule) -> Array:
    """The norm of the difference; 0 of nothing."""
    difference = X - Y
    if not difference.size and math.isinf(p):
        return xp.zeros((), X.dtype)
    return xp.asarray(norm_of(difference, p, None, False, xp))


@kernel("dist_grad", place=BOTH, dtypes=REAL_FLOATS)
@rounded_once
def dist_grad(
    X: Array, Y: Array, Out: Array, Out_grad: Array, *, p: float, ctx: KernelContext, xp: ArrayModule
) -> tuple[Array | None, Array | None]:
    """The gradient of the norm, for Y its negative."""
    x, y = align(X, Y, -1)
    difference = x - y
    g = norm_gradient(difference, Out, Out_grad, p, 0.0, xp)
    g = xp.where(Out == 0, g.dtype.type(0), g)
    return sum_to(g, x, X) if ctx.wants("X@GRAD") else None, -sum_to(g, y, Y) if ctx.wants("Y@GRAD") else None


# frobenius_norm -------------------------------------------------------------------------------------------------------
@kernel("frobenius_norm", place=BOTH, dtypes=REAL_FLOATS)
def frobenius_norm(X: Array, *, dim: list[int], keep_dim: bool, reduce_all: bool, xp: ArrayModule) -> Array:
    """Square root of the sum of squares."""
    return xp.sqrt(sum_over(X * X, axes_of(X.ndim, dim, reduce_all), keep_dim))


@kernel("frobenius_norm_grad", place=BOTH, dtypes=REAL_FLOATS)
def frobenius_norm_grad(
    X: Array, Out_grad: Array, Out: Array, *, dim: list[int], reduce_all: bool, xp: ArrayModule
) -> Array:
    """Out@GRAD X / (Out + 1e-12), so that the norm 0 gives 0."""
    axes = axes_of(X.ndim, dim, reduce_all)
    return X * kept(Out_grad / (Out + Out.dtype.type(1e-12)), X.shape, axes)


# l1_norm --------------------------------------------------------------------------------------------------------------
@kernel("l1_norm", place=BOTH, dtypes=REAL_FLOATS)
def l1_norm(X: Array, *, xp: ArrayModule) -> Array:
    """Sum of the sizes of all elements."""
    return xp.asarray(sum_over(xp.abs(X), None, False))


@kernel("l1_norm_grad", place=BOTH, dtypes=REAL_FLOATS)
def l1_norm_grad(X: Array, Out_grad: Array, *, xp: ArrayModule) -> Array:
    """Out@GRAD sign(X)."""
    return xp.sign(X) * Out_grad.reshape(())


# norm -----------------------------------------------------------------------------------------------------------------
@kernel("norm", place=BOTH, dtypes=REAL_FLOATS)
@rounded_once
def norm(X: Array, *, axis: int, epsilon: float, xp: ArrayModule) -> tuple[Array, Array]:
    """Vectors of length 1, and their lengths before."""
    along = axis if X.ndim else None
    length = xp.sqrt((X * X).sum(axis=along, keepdims=True) + X.dtype.type(epsilon))
    return X / length, length


@kernel("norm_grad", place=BOTH, dtypes=REAL_FLOATS)
@rounded_once
def norm_grad(X: Array, Norm: Array, Out_grad: Array, *, axis: int) -> Array:
    """What of Out@GRAD is across the vectors, divided by their lengths."""
    along = (X * Out_grad).sum(axis=axis if X.ndim else None, keepdims=True) / (Norm * Norm)
    return (Out_grad - X * along) / Norm


# p_norm ---------------------------------------------------------------------------------------------------------------
@kernel("p_norm", place=BOTH, dtypes=REAL_FLOATS)
def p_norm(X: Array, *, porder: float, axis: int, keepdim: bool, asvector: bool, xp: ArrayModule) -> Array:
    """The norm of order porder."""
    return norm_of(X, porder, axes_of(X.ndim, [axis], asvector), keepdim, xp)


@kernel("p_norm_grad", place=BOTH, dtypes=REAL_FLOATS)
def p_norm_grad(
    X: Array, Out: Array, Out_grad: Array, *, porder: float, axis: int, epsilon: float, asvector: bool, xp: ArrayModule
) -> Array:
    """Out@GRAD sign(X) |X|^(p-1) / (Out^(p-1) + epsilon)."""
    axes = axes_of(X.ndim, [axis], asvector)
    return norm_gradient(X, kept(Out, X.shape, axes), kept(Out_grad, X.shape, axes), porder, epsilon, xp)


# renorm ---------------------------------------------------------------------------------------------------------------
def _norms(x: Array, p: float, axis: int, max_norm: float, xp: ArrayModule) -> tuple[tuple[int, ...], Array, Array]:
    """(dims of a part, norms of the parts, their factors), the latter with these dims as 1."""
    axes = tuple(i for i in range(x.ndim) if i != axis % x.ndim)
    norms = norm_of(x, p, axes, True, xp)
    return axes, norms, x.dtype.type(max_norm) / norms


@kernel("renorm", place=BOTH, dtypes=REAL_FLOATS)
@rounded_once
def renorm(X: Array, *, p: float, axis: int, max_norm: float, xp: ArrayModule) -> Array:
    """Parts that are too long are shortened."""
    _, norms, factors = _norms(X, p, axis, max_norm, xp)
    return xp.where(norms > max_norm, X * factors, X)


@kernel("renorm_grad", place=BOTH, dtypes=REAL_FLOATS)
@rounded_once
def renorm_grad(X: Array, Out_grad: Array, *, p: float, axis: int, max_norm: float, xp: ArrayModule) -> Array:
    """Out@GRAD, through the factor where there is one."""
    axes, norms, factors = _norms(X, p, axis, max_norm, xp)
    by_norm = -factors * (X * Out_grad).sum(axis=axes, keepdims=True) / norms
    through = factors * Out_grad + norm_gradient(X, norms, by_norm, p, 0.0, xp)
    return xp.where(norms > max_norm, through, Out_grad)


# squared_l2_norm ------------------------------------------------------------------------------------------------------
@kernel("squared_l2_norm", place=BOTH, dtypes=REAL_FLOATS)
def squared_l2_norm(X: Array, *, xp: ArrayModule) -> Array:
    """Sum of squares, shape [1]."""
    flat = X.reshape(-1)
    if X.dtype.itemsize == 2:
        flat = flat.astype(xp.float32)
    return xp.dot(flat, flat).astype(X.dtype).reshape(1)


@kernel("squared_l2_norm_grad", place=BOTH, dtypes=REAL_FLOATS)
def squared_l2_norm_grad(X: Array, Out_grad: Array, *, xp: ArrayModule) -> Array:
    """2 Out@GRAD X."""
    return X * (Out_grad.reshape(()) * X.dtype.type(2))
