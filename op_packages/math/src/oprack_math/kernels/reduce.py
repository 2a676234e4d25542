"""Kernels of reductions."""

from __future__ import annotations

from functools import partial

from oprack.kernel import kernel
from oprack.tensor import numpy_dtype
from oprack.types import ALL_DTYPES, BOOL, COMPLEX, FLOATS, HALF_FLOATS, INTEGERS

from oprack_math.kernels._broadcast import BOTH, accumulator
from oprack_math.kernels._reduce import axes_of, count_of, kept, spread, total
from oprack_math.kernels.elementwise import divide

REAL = FLOATS | HALF_FLOATS | INTEGERS


def _summing(call):
    """A function of X and its axes that sums floats in their own dtype; None where the sum has another."""
    if call.dtypes["X"][0].name not in FLOATS or call.attrs.get("out_dtype", -1) >= 0:
        return None
    return partial(total, keep_dim=call.attrs["keep_dim"], xp=call.xp)


def _specialize_sum(call):
    summing, dim, everything = _summing(call), call.attrs["dim"], call.attrs["reduce_all"]
    return summing and (lambda X: summing(X, axes_of(X.ndim, dim, everything)))


def _specialize_mean(call):
    summing, dim, everything = _summing(call), call.attrs["dim"], call.attrs["reduce_all"]
    if summing is None:
        return None

    def mean(X):
        axes = axes_of(X.ndim, dim, everything)
        found = summing(X, axes)
        return found / found.dtype.type(count_of(X.shape, axes))

    return mean


@kernel("reduce_sum", place=BOTH, dtypes=ALL_DTYPES, specialize=_specialize_sum)
def reduce_sum(X, *, dim, keep_dim, reduce_all, out_dtype, xp):
    """Sum over some dims."""
    if out_dtype >= 0:
        dtype = numpy_dtype(out_dtype)
    else:
        dtype = numpy_dtype("int64") if X.dtype.name in ("bool", "int32") else X.dtype
    axes = axes_of(X.ndim, dim, reduce_all)
    return total(X, axes, keep_dim, xp, accumulator(dtype)).astype(dtype, copy=False)


@kernel("reduce_mean", place=BOTH, dtypes=ALL_DTYPES, specialize=_specialize_mean)
def reduce_mean(X, *, dim, keep_dim, reduce_all, xp):
    """Mean over some dims."""
    axes = axes_of(X.ndim, dim, reduce_all)
    if X.dtype.kind == "b":
        return xp.any(X, axis=axes, keepdims=keep_dim)
    count = count_of(X.shape, axes)
    summed = total(X, axes, keep_dim, xp, accumulator(X.dtype))
    return divide(summed, summed.dtype.type(count), xp).astype(X.dtype, copy=False)


@kernel("reduce_prod", place=BOTH, dtypes=REAL)
def reduce_prod(X, *, dim, keep_dim, reduce_all, xp):
    """Product over some dims."""
    axes = axes_of(X.ndim, dim, reduce_all)
    return X.prod(axis=axes, dtype=accumulator(X.dtype), keepdims=keep_dim).astype(X.dtype, copy=False)


@kernel("reduce_max", place=BOTH, dtypes=REAL)
def reduce_max(X, *, dim, keep_dim, reduce_all, xp):
    """Greatest element over some dims."""
    return X.max(axis=axes_of(X.ndim, dim, reduce_all), keepdims=keep_dim)


@kernel("reduce_min", place=BOTH, dtypes=REAL)
def reduce_min(X, *, dim, keep_dim, reduce_all, xp):
    """Smallest element over some dims."""
    return X.min(axis=axes_of(X.ndim, dim, reduce_all), keepdims=keep_dim)


def _tensor_axes(dim, axis_tensor, axis_tensors):
    if axis_tensors:
        return [int(t.reshape(-1)[0]) for t in axis_tensors]
    return dim if axis_tensor is None else [int(a) for a in axis_tensor.reshape(-1)]


@kernel("reduce_all", place=BOTH, dtypes=ALL_DTYPES)
def reduce_all_true(X, AxisTensor=None, AxisTensorList=(), *, dim, keep_dim, reduce_all, xp):
    """Whether all are true."""
    axes = axes_of(X.ndim, _tensor_axes(dim, AxisTensor, AxisTensorList), reduce_all)
    return xp.all(X, axis=axes, keepdims=keep_dim)


@kernel("reduce_any", place=BOTH, dtypes=ALL_DTYPES)
def reduce_any_true(X, AxisTensor=None, AxisTensorList=(), *, dim, keep_dim, reduce_all, xp):
    """Whether any is true."""
    axes = axes_of(X.ndim, _tensor_axes(dim, AxisTensor, AxisTensorList), reduce_all)
    return xp.any(X, axis=axes, keepdims=keep_dim)


@kernel("reduce_sum_grad", place=BOTH, dtypes=ALL_DTYPES)
def reduce_sum_grad(X, Out_grad, *, dim, reduce_all, xp):
    """Out@GRAD at every element."""
    return spread(Out_grad, X, axes_of(X.ndim, dim, reduce_all), xp)


@kernel("reduce_mean_grad", place=BOTH, dtypes=FLOATS | HALF_FLOATS | COMPLEX | BOOL)
def reduce_mean_grad(X, Out_grad, *, dim, reduce_all, xp):
    """Out@GRAD / n at every element."""
    axes = axes_of(X.ndim, dim, reduce_all)
    count = Out_grad.dtype.type(count_of(X.shape, axes))
    return spread(divide(Out_grad, count, xp), X, axes, xp)


@kernel("reduce_prod_grad", place=BOTH, dtypes=REAL)
def reduce_prod_grad(X, Out_grad, Out, *, dim, reduce_all, xp):
    """Out@GRAD Out / X."""
    axes = axes_of(X.ndim, dim, reduce_all)
    return divide(kept(Out_grad * Out, X.shape, axes), X, xp)


@kernel("reduce_max_grad", place=BOTH, dtypes=REAL)
def reduce_max_grad(X, Out_grad, Out, *, dim, reduce_all, xp):
    """Out@GRAD at every maximum."""
    return _at_extremum(X, Out_grad, Out, axes_of(X.ndim, dim, reduce_all), xp)


@kernel("reduce_min_grad", place=BOTH, dtypes=REAL)
def reduce_min_grad(X, Out_grad, Out, *, dim, reduce_all, xp):
    """Out@GRAD at every minimum."""
    return _at_extremum(X, Out_grad, Out, axes_of(X.ndim, dim, reduce_all), xp)


def _at_extremum(x, gradient, extremum, axes, xp):
    chosen = x == kept(extremum, x.shape, axes)
    return xp.where(chosen, kept(gradient, x.shape, axes), gradient.dtype.type(0))
