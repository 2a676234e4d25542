"""Kernels of reductions over dims, positions of extrema, and running sums."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
from oprack.kernel import Array, ArrayModule, KernelSpecialization, RequiredArray, kernel
from oprack.tensor import ShapeOnly, numpy_dtype
from oprack.types import ALL_DTYPES, BOOL, FLOATS

from oprack_math.kernels._numeric import accumulator, conjugate, divide, rounded_once
from oprack_math.kernels._reduce import axes_of, count_of, kept, spread, sum_over, total
from oprack_math.kernels._sets import BOTH, FLOATING, NUMBERS, REAL, REAL_FLOATS


# arg extremum ---------------------------------------------------------------------------------------------------------
# What arg_max and arg_min share.
def position(
    find: Any, x: Array, worst: float, axis: int, keepdims: bool, flatten: bool, dtype: int, xp: ArrayModule
) -> Array:
    """find(x) along axis, with NaN counted as `worst`."""
    if x.dtype.kind not in "iu":
        x = xp.where(xp.isnan(x), x.dtype.type(worst), x)
    kind = xp.int32 if dtype == 2 else xp.int64
    if flatten or not x.ndim:
        found = xp.asarray(find(x.reshape(-1), axis=0)).astype(kind)
        return found.reshape((1,) * x.ndim) if keepdims and flatten else found
    found = find(x, axis=axis)
    return (xp.expand_dims(found, axis) if keepdims else found).astype(kind, copy=False)


# shared ---------------------------------------------------------------------------------------------------------------
# What kernels of reductions share.
def floats_summing(call: KernelSpecialization) -> Callable[..., Any] | None:
    """A function of X and its axes that sums floats in their own dtype; None where the sum has another."""
    if call.dtypes["X"][0].name not in FLOATS or call.attrs.get("out_dtype", -1) >= 0:
        return None
    return partial(total, keep_dim=call.attrs["keep_dim"], xp=call.xp)


def tensor_axes(dim: Sequence[int], axis_tensor: Array | None, axis_tensors: Sequence[Array]) -> Sequence[int]:
    """Dims to reduce: those of the tensors if there are some, else the attribute."""
    if axis_tensors:
        return [int(t.reshape(-1)[0]) for t in axis_tensors]
    return dim if axis_tensor is None else [int(a) for a in axis_tensor.reshape(-1)]


def at_extremum(x: Array, gradient: Array, extremum: Array, axes: tuple[int, ...] | None, xp: ArrayModule) -> Array:
    """The gradient at every element that equals the extremum, else 0."""
    chosen = x == kept(extremum, x.shape, axes)
    return xp.where(chosen, kept(gradient, x.shape, axes), gradient.dtype.type(0))


def shared_at_extremum(
    X: Array,
    AxisTensor: Array | None = None,
    AxisTensorList: Sequence[Array] = (),
    Out: RequiredArray = None,
    Out_grad: RequiredArray = None,
    *,
    dim: list[int],
    reduce_all: bool,
    xp: ArrayModule,
) -> Array:
    """The gradient in equal shares at all elements that equal the extremum, else 0."""
    axes = axes_of(X.ndim, tensor_axes(dim, AxisTensor, AxisTensorList), reduce_all)
    chosen = X == kept(Out, X.shape, axes)
    count = chosen.sum(axis=axes, keepdims=True)
    share = divide(kept(Out_grad, X.shape, axes).astype(accumulator(X.dtype)), count.astype(accumulator(X.dtype)), xp)
    return xp.where(chosen, share, share.dtype.type(0)).astype(X.dtype, copy=False)


# running --------------------------------------------------------------------------------------------------------------
# The best element so far along a dim, and the gradient of it.
def running_extremum(x: Array, extremum: np.ufunc, axis: int, dtype: int) -> tuple[Array, Array]:
    """(values, places) of the extremum ufunc's running result; of equal elements the last one counts."""
    kind = numpy_dtype(dtype)
    if not x.ndim:
        return x.copy(), np.zeros((), kind)
    best = extremum.accumulate(x, axis=axis)
    places = np.arange(x.shape[axis]).reshape([-1 if i == axis % x.ndim else 1 for i in range(x.ndim)])
    reached = np.where((x == best) | (x != x), places, 0)
    return best, np.maximum.accumulate(reached, axis=axis).astype(kind)


def add_at(x: Array, indices: Array, gradient: Array, axis: int) -> Array:
    """Zeros like x, and each element of the gradient added where its index along the dim says."""
    total = np.zeros_like(x)
    if not x.ndim:
        return total + gradient
    where = list(np.ogrid[tuple(slice(n) for n in x.shape)])
    where[axis] = indices
    np.add.at(total, tuple(where), gradient)
    return total


# arg_max --------------------------------------------------------------------------------------------------------------
@kernel("arg_max", place=BOTH, dtypes=REAL)
def arg_max(X: Array, *, axis: int, keepdims: bool, flatten: bool, dtype: int, xp: ArrayModule) -> Array:
    """Where the greatest element is."""
    return position(xp.argmax, X, -float("inf"), axis, keepdims, flatten, dtype, xp)


# arg_min --------------------------------------------------------------------------------------------------------------
@kernel("arg_min", place=BOTH, dtypes=REAL)
def arg_min(X: Array, *, axis: int, keepdims: bool, flatten: bool, dtype: int, xp: ArrayModule) -> Array:
    """Where the smallest element is."""
    return position(xp.argmin, X, float("inf"), axis, keepdims, flatten, dtype, xp)


# cummax ---------------------------------------------------------------------------------------------------------------
@kernel("cummax", dtypes=REAL)
def cummax(x: Array, *, axis: int, dtype: int) -> tuple[Array, Array]:
    """Running maximum and its places."""
    return running_extremum(x, np.maximum, axis, dtype)


@kernel("cummax_grad", dtypes=REAL)
def cummax_grad(x: Array, indices: Array, out_grad: Array, *, axis: int) -> Array:
    """out@GRAD where the maxima come from."""
    return add_at(x, indices, out_grad, axis)


# cummin ---------------------------------------------------------------------------------------------------------------
@kernel("cummin", dtypes=REAL)
def cummin(x: Array, *, axis: int, dtype: int) -> tuple[Array, Array]:
    """Running minimum and its places."""
    return running_extremum(x, np.minimum, axis, dtype)


@kernel("cummin_grad", dtypes=REAL)
def cummin_grad(x: Array, indices: Array, out_grad: Array, *, axis: int) -> Array:
    """out@GRAD where the minima come from."""
    return add_at(x, indices, out_grad, axis)


# cumprod --------------------------------------------------------------------------------------------------------------
@kernel("cumprod", place=BOTH, dtypes=NUMBERS)
@rounded_once
def cumprod(X: Array, *, dim: int, xp: ArrayModule) -> Array:
    """Running products."""
    return xp.cumprod(X, axis=dim, dtype=X.dtype) if X.ndim else X.copy()


def _sums_to_the_end(x: Array, dim: int, xp: ArrayModule) -> Array:
    return xp.flip(xp.cumsum(xp.flip(x, dim), axis=dim, dtype=x.dtype), dim)


@kernel("cumprod_grad", place=BOTH, dtypes=NUMBERS)
@rounded_once
def cumprod_grad(X: Array, Out: Array, Out_grad: Array, *, dim: int, xp: ArrayModule) -> Array:
    """Sums of Out@GRAD Out from each element on, divided by it; without that element where it is the first zero."""
    if not X.ndim:
        return Out_grad.copy()
    x, out = conjugate(X, xp), conjugate(Out, xp)
    zeros = xp.cumsum(x == 0, axis=dim)
    first, one = (zeros == 1) & (x == 0), x.dtype.type(1)
    without = xp.cumprod(xp.where(first, one, x), axis=dim, dtype=x.dtype)
    before = divide(_sums_to_the_end(Out_grad * out, dim, xp), xp.where(x == 0, one, x), xp)
    at = _sums_to_the_end(Out_grad * without, dim, xp)
    # behind the first zero every product holds it
    return xp.where(zeros == 0, before, xp.where(first, at, x.dtype.type(0)))


# cumsum ---------------------------------------------------------------------------------------------------------------
def _running_sum(x: Array, axis: int, exclusive: bool, reverse: bool, xp: ArrayModule) -> Array:
    if not x.ndim:
        return x.copy()
    ordered = xp.flip(x, axis) if reverse else x
    total = xp.cumsum(ordered, axis=axis, dtype=accumulator(x.dtype)).astype(x.dtype, copy=False)
    if exclusive:
        shifted = xp.zeros_like(total)
        axis %= x.ndim
        lead = (slice(None),) * axis
        shifted[(*lead, slice(1, None))] = total[(*lead, slice(None, -1))]
        total = shifted
    return xp.ascontiguousarray(xp.flip(total, axis)) if reverse else total


@kernel("cumsum", place=BOTH, dtypes=NUMBERS)
def cumsum(X: Array, *, axis: int, flatten: bool, exclusive: bool, reverse: bool, xp: ArrayModule) -> Array:
    """Running sums."""
    return _running_sum(X.reshape(-1) if flatten else X, 0 if flatten else axis, exclusive, reverse, xp)


@kernel("cumsum_grad", place=BOTH, dtypes=NUMBERS)
def cumsum_grad(
    X: Array, Out_grad: Array, *, axis: int, flatten: bool, exclusive: bool, reverse: bool, xp: ArrayModule
) -> Array:
    """Running sums of Out@GRAD from the other end."""
    return _running_sum(Out_grad, 0 if flatten else axis, exclusive, not reverse, xp).reshape(X.shape)


# logcumsumexp ---------------------------------------------------------------------------------------------------------
def _running(x: Array, axis: int, exclusive: bool, reverse: bool, nothing: float) -> Array:
    """Logarithms of running sums of exponentials; `nothing` is that of the empty sum."""
    ordered = np.flip(x, axis) if reverse else x
    total = np.logaddexp.accumulate(ordered, axis=axis)
    if exclusive:
        total = np.roll(total, 1, axis)
        total[(slice(None),) * (axis % x.ndim) + (slice(1),)] = nothing
    return np.ascontiguousarray(np.flip(total, axis)) if reverse else total


@kernel("logcumsumexp", dtypes=REAL_FLOATS)
@rounded_once
def logcumsumexp(X: Array, *, axis: int, flatten: bool, exclusive: bool, reverse: bool) -> Array:
    """Along a dim, or over all elements as one dim."""
    x = X.reshape(-1) if flatten or not X.ndim else X
    lowest = np.finfo(x.dtype).min
    found = _running(x, 0 if flatten or not X.ndim else axis, exclusive, reverse, lowest)
    return found if flatten else found.reshape(X.shape)


@kernel("logcumsumexp_grad", dtypes=REAL_FLOATS)
@rounded_once
def logcumsumexp_grad(
    X: Array, Out: Array, Out_grad: Array, *, axis: int, flatten: bool, exclusive: bool, reverse: bool
) -> Array:
    """The same sums from the other end, of positive and of negative gradients apart, so that none overflows."""
    x = X.reshape(Out.shape or -1)
    out, g = Out.reshape(x.shape), Out_grad.reshape(x.shape)
    axis = 0 if flatten or not X.ndim else axis
    logs = (np.log(np.maximum(part, 0)) - out for part in (g, -g))
    positive, negative = (np.exp(x + _running(log, axis, exclusive, not reverse, -np.inf)) for log in logs)
    return (positive - negative).reshape(X.shape)


# logsumexp ------------------------------------------------------------------------------------------------------------
@kernel("logsumexp", place=BOTH, dtypes=REAL_FLOATS)
def logsumexp(X: Array, *, axis: list[int], keepdim: bool, reduce_all: bool, xp: ArrayModule) -> Array:
    """ln of the sum of e^X; the greatest element is taken out first."""
    axes = axes_of(X.ndim, axis, reduce_all)
    if not X.size:
        return xp.log(sum_over(xp.exp(X), axes, keepdim))
    top = X.max(axis=axes, keepdims=True)
    top = xp.where(xp.isfinite(top), top, X.dtype.type(0))
    total = xp.log(sum_over(xp.exp(X - top), axes, True)) + top
    return total if keepdim else xp.squeeze(total, axis=axes)


@kernel("logsumexp_grad", place=BOTH, dtypes=REAL_FLOATS)
def logsumexp_grad(
    X: Array, Out: Array, Out_grad: Array, *, axis: list[int], reduce_all: bool, xp: ArrayModule
) -> Array:
    """Out@GRAD e^(X - Out)."""
    axes = axes_of(X.ndim, axis, reduce_all)
    return kept(Out_grad, X.shape, axes) * xp.exp(X - kept(Out, X.shape, axes))


# mean -----------------------------------------------------------------------------------------------------------------
@kernel("mean", place=BOTH, dtypes=FLOATING)
def mean(X: Array, *, xp: ArrayModule) -> Array:
    """Mean of all elements."""
    total = X.sum(dtype=accumulator(X.dtype))
    return (total / total.dtype.type(X.size)).astype(X.dtype)


@kernel("mean_grad", place=BOTH, dtypes=FLOATING)
def mean_grad(X: ShapeOnly, Out_grad: Array, *, xp: ArrayModule) -> Array:
    """Out@GRAD / n at every element."""
    return spread(Out_grad / Out_grad.dtype.type(X.size), X, None, xp)


# reduce_all -----------------------------------------------------------------------------------------------------------
@kernel("reduce_all", place=BOTH, dtypes=ALL_DTYPES)
def reduce_all_true(
    X: Array,
    AxisTensor: Array | None = None,
    AxisTensorList: Sequence[Array] = (),
    *,
    dim: list[int],
    keep_dim: bool,
    reduce_all: bool,
    xp: ArrayModule,
) -> Array:
    """Whether all are true."""
    axes = axes_of(X.ndim, tensor_axes(dim, AxisTensor, AxisTensorList), reduce_all)
    return xp.all(X, axis=axes, keepdims=keep_dim)


# reduce_amax ----------------------------------------------------------------------------------------------------------
@kernel("reduce_amax", place=BOTH, dtypes=REAL)
def reduce_amax(
    X: Array,
    AxisTensor: Array | None = None,
    AxisTensorList: Sequence[Array] = (),
    *,
    dim: list[int],
    keep_dim: bool,
    reduce_all: bool,
) -> Array:
    """Greatest element over some dims."""
    axes = axes_of(X.ndim, tensor_axes(dim, AxisTensor, AxisTensorList), reduce_all)
    return X.max(axis=axes, keepdims=keep_dim)


reduce_amax_grad = kernel("reduce_amax_grad", place=BOTH, dtypes=REAL)(shared_at_extremum)


# reduce_amin ----------------------------------------------------------------------------------------------------------
@kernel("reduce_amin", place=BOTH, dtypes=REAL)
def reduce_amin(
    X: Array,
    AxisTensor: Array | None = None,
    AxisTensorList: Sequence[Array] = (),
    *,
    dim: list[int],
    keep_dim: bool,
    reduce_all: bool,
) -> Array:
    """Smallest element over some dims."""
    axes = axes_of(X.ndim, tensor_axes(dim, AxisTensor, AxisTensorList), reduce_all)
    return X.min(axis=axes, keepdims=keep_dim)


reduce_amin_grad = kernel("reduce_amin_grad", place=BOTH, dtypes=REAL)(shared_at_extremum)


# reduce_any -----------------------------------------------------------------------------------------------------------
@kernel("reduce_any", place=BOTH, dtypes=ALL_DTYPES)
def reduce_any_true(
    X: Array,
    AxisTensor: Array | None = None,
    AxisTensorList: Sequence[Array] = (),
    *,
    dim: list[int],
    keep_dim: bool,
    reduce_all: bool,
    xp: ArrayModule,
) -> Array:
    """Whether any is true."""
    axes = axes_of(X.ndim, tensor_axes(dim, AxisTensor, AxisTensorList), reduce_all)
    return xp.any(X, axis=axes, keepdims=keep_dim)


# reduce_max -----------------------------------------------------------------------------------------------------------
@kernel("reduce_max", place=BOTH, dtypes=REAL)
def reduce_max(X: Array, *, dim: list[int], keep_dim: bool, reduce_all: bool, xp: ArrayModule) -> Array:
    """Greatest element over some dims."""
    return X.max(axis=axes_of(X.ndim, dim, reduce_all), keepdims=keep_dim)


@kernel("reduce_max_grad", place=BOTH, dtypes=REAL)
def reduce_max_grad(
    X: Array, Out_grad: Array, Out: Array, *, dim: list[int], reduce_all: bool, xp: ArrayModule
) -> Array:
    """Out@GRAD at every maximum."""
    return at_extremum(X, Out_grad, Out, axes_of(X.ndim, dim, reduce_all), xp)


# reduce_mean ----------------------------------------------------------------------------------------------------------
def _specialize_mean(call: KernelSpecialization) -> Callable[..., Any] | None:
    summing, dim, everything = floats_summing(call), call.attrs["dim"], call.attrs["reduce_all"]
    if summing is None:
        return None

    def mean(X: Array) -> Array:
        axes = axes_of(X.ndim, dim, everything)
        found = summing(X, axes)
        return found / found.dtype.type(count_of(X.shape, axes))

    return mean


@kernel("reduce_mean", place=BOTH, dtypes=ALL_DTYPES, specialize=_specialize_mean)
def reduce_mean(X: Array, *, dim: list[int], keep_dim: bool, reduce_all: bool, xp: ArrayModule) -> Array:
    """Mean over some dims."""
    axes = axes_of(X.ndim, dim, reduce_all)
    if X.dtype.kind == "b":
        return xp.any(X, axis=axes, keepdims=keep_dim)
    count = count_of(X.shape, axes)
    summed = total(X, axes, keep_dim, xp, accumulator(X.dtype))
    return divide(summed, summed.dtype.type(count), xp).astype(X.dtype, copy=False)


@kernel("reduce_mean_grad", place=BOTH, dtypes=FLOATING | BOOL)
def reduce_mean_grad(X: ShapeOnly, Out_grad: Array, *, dim: list[int], reduce_all: bool, xp: ArrayModule) -> Array:
    """Out@GRAD / n at every element."""
    axes = axes_of(X.ndim, dim, reduce_all)
    count = Out_grad.dtype.type(count_of(X.shape, axes))
    return spread(divide(Out_grad, count, xp), X, axes, xp)


# reduce_min -----------------------------------------------------------------------------------------------------------
@kernel("reduce_min", place=BOTH, dtypes=REAL)
def reduce_min(X: Array, *, dim: list[int], keep_dim: bool, reduce_all: bool, xp: ArrayModule) -> Array:
    """Smallest element over some dims."""
    return X.min(axis=axes_of(X.ndim, dim, reduce_all), keepdims=keep_dim)


@kernel("reduce_min_grad", place=BOTH, dtypes=REAL)
def reduce_min_grad(
    X: Array, Out_grad: Array, Out: Array, *, dim: list[int], reduce_all: bool, xp: ArrayModule
) -> Array:
    """Out@GRAD at every minimum."""
    return at_extremum(X, Out_grad, Out, axes_of(X.ndim, dim, reduce_all), xp)


# reduce_prod ----------------------------------------------------------------------------------------------------------
@kernel("reduce_prod", place=BOTH, dtypes=NUMBERS)
def reduce_prod(X: Array, *, dim: list[int], keep_dim: bool, reduce_all: bool, xp: ArrayModule) -> Array:
    """Product over some dims."""
    axes = axes_of(X.ndim, dim, reduce_all)
    return X.prod(axis=axes, dtype=accumulator(X.dtype), keepdims=keep_dim).astype(X.dtype, copy=False)


@kernel("reduce_prod_grad", place=BOTH, dtypes=NUMBERS)
def reduce_prod_grad(
    X: Array, Out_grad: Array, Out: Array, *, dim: list[int], reduce_all: bool, xp: ArrayModule
) -> Array:
    """Out@GRAD Out / X."""
    axes = axes_of(X.ndim, dim, reduce_all)
    return divide(kept(Out_grad * conjugate(Out, xp), X.shape, axes), conjugate(X, xp), xp)


# reduce_sum -----------------------------------------------------------------------------------------------------------
def _specialize_sum(call: KernelSpecialization) -> Callable[..., Any] | None:
    summing, dim, everything = floats_summing(call), call.attrs["dim"], call.attrs["reduce_all"]
    return summing and (lambda X: summing(X, axes_of(X.ndim, dim, everything)))


@kernel("reduce_sum", place=BOTH, dtypes=ALL_DTYPES, specialize=_specialize_sum)
def reduce_sum(X: Array, *, dim: list[int], keep_dim: bool, reduce_all: bool, out_dtype: int, xp: ArrayModule) -> Array:
    """Sum over some dims."""
    if out_dtype >= 0:
        dtype = numpy_dtype(out_dtype)
    else:
        dtype = numpy_dtype("int64") if X.dtype.name in ("bool", "int32") else X.dtype
    axes = axes_of(X.ndim, dim, reduce_all)
    return total(X, axes, keep_dim, xp, accumulator(dtype)).astype(dtype, copy=False)


@kernel("reduce_sum_grad", place=BOTH, dtypes=ALL_DTYPES)
def reduce_sum_grad(X: ShapeOnly, Out_grad: Array, *, dim: list[int], reduce_all: bool, xp: ArrayModule) -> Array:
    """Out@GRAD at every element."""
    return spread(Out_grad, X, axes_of(X.ndim, dim, reduce_all), xp)


# trace ----------------------------------------------------------------------------------------------------------------
@kernel("trace", place=BOTH, dtypes=NUMBERS)
def trace(Input: Array, *, offset: int, axis1: int, axis2: int, xp: ArrayModule) -> Array:
    """Sum of a diagonal."""
    total = xp.trace(Input, offset, axis1, axis2, dtype=accumulator(Input.dtype))
    return xp.asarray(total).astype(Input.dtype, copy=False)


@kernel("trace_grad", place=BOTH, dtypes=NUMBERS)
def trace_grad(Input: ShapeOnly, Out_grad: Array, *, offset: int, axis1: int, axis2: int, xp: ArrayModule) -> Array:
    """Out@GRAD on the diagonal."""
    grad = xp.zeros(Input.shape, Out_grad.dtype)
    matrices = xp.moveaxis(grad, (axis1, axis2), (-2, -1))
    rows, columns = matrices.shape[-2:]
    i = xp.arange(max(0, min(rows + min(offset, 0), columns - max(offset, 0))))
    matrices[..., i - min(offset, 0), i + max(offset, 0)] = Out_grad[..., None]
    return grad
