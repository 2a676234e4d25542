"""Kernels of arithmetic with one tensor, and of sums of several."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
from oprack.device import dense_rows, merged_rows
from oprack.errors import InvalidArgumentError
from oprack.kernel import Array, ArrayModule, KernelContext, KernelSpecialization, kernel
from oprack.tensor import LoDTensor, LoDTensorArray, SelectedRows
from oprack.types import ALL_DTYPES

from oprack_math.kernels._broadcast import align, sum_to
from oprack_math.kernels._numeric import accumulator, rounded_once
from oprack_math.kernels._rows import with_values
from oprack_math.kernels._sets import BOTH, NUMBERS, REAL, REAL_FLOATS


# abs ------------------------------------------------------------------------------------------------------------------
@kernel("abs", place=BOTH, dtypes=NUMBERS)
def absolute(X: Array, *, out: Array | None = None, xp: ArrayModule) -> Array:
    """Absolute value; of complex numbers, the modulus."""
    return xp.abs(X, out=out if out is not None and out.dtype.kind != "c" else None)


@kernel("abs_grad", place=BOTH, dtypes=NUMBERS)
def abs_grad(X: Array, Out_grad: Array, *, xp: ArrayModule) -> Array:
    """Out@GRAD in the direction of X."""
    return Out_grad * _direction(X, xp)


@kernel("abs_double_grad", place=BOTH, dtypes=NUMBERS)
def abs_double_grad(x: Array, grad_x_grad: Array, *, xp: ArrayModule) -> Array:
    """grad_x@GRAD in the direction of x."""
    return grad_x_grad * _direction(x, xp)


def _direction(x: Array, xp: ArrayModule) -> Array:
    if x.dtype.kind != "c":
        return xp.sign(x)
    modulus = xp.abs(x)
    return xp.where(modulus == 0, x.dtype.type(0), x / modulus)


# clip -----------------------------------------------------------------------------------------------------------------
def _bounds(x: Array, lower: Array | None, upper: Array | None, low: float, high: float) -> tuple[Array, Array]:
    """Both bounds in the dtype of x; raises InvalidArgumentError when they are attributes in the wrong order."""
    if lower is None and upper is None and low > high:
        raise InvalidArgumentError(f"op clip: min is {low} and max is {high}; expected min <= max")
    return _bound(x, lower, low), _bound(x, upper, high)


def _bound(x: Array, tensor: Array | None, value: float) -> Array:
    if tensor is not None:
        return tensor.reshape(-1)[:1].reshape(()).astype(x.dtype)
    if x.dtype.kind in "iu":
        limits = np.iinfo(x.dtype)
        value = int(min(max(value, limits.min), limits.max)) if math.isinf(value) else math.trunc(value)
        return x.dtype.type(min(max(value, limits.min), limits.max))
    return x.dtype.type(value)


def _clipped(
    x: Array, lower: Array | None, upper: Array | None, low: float, high: float, out: Array | None, xp: ArrayModule
) -> Array:
    least, most = _bounds(x, lower, upper, low, high)
    return xp.minimum(xp.maximum(x, least, out=out), most, out=out)


@kernel("clip", place=BOTH, dtypes=REAL)
def clip(
    X: Array,
    Min: Array | None = None,
    Max: Array | None = None,
    *,
    min: float,
    max: float,
    out: Array | None = None,
    xp: ArrayModule,
) -> Array:
    """X held between the bounds; NaN stays NaN."""
    return _clipped(X, Min, Max, min, max, out, xp)


@kernel("clip", place=BOTH, dtypes=REAL, deterministic={"cpu"})
def clip_rows(
    X: SelectedRows, Min: Array | None = None, Max: Array | None = None, *, min: float, max: float, xp: ArrayModule
) -> SelectedRows:
    """Rows that are listed twice are added before their values are clipped."""
    merged = merged_rows(X, xp)
    merged.value = _clipped(merged.value, Min, Max, min, max, None, xp)
    return merged


def _inside(x: Array, lower: Array | None, upper: Array | None, low: float, high: float) -> Array:
    least, most = _bounds(x, lower, upper, low, high)
    return (x > least) & (x < most)


@kernel("clip_grad", place=BOTH, dtypes=REAL)
def clip_grad(
    X: Array,
    Out_grad: Array,
    Min: Array | None = None,
    Max: Array | None = None,
    *,
    min: float,
    max: float,
    xp: ArrayModule,
) -> Array:
    """Out@GRAD strictly between the bounds, else 0."""
    return xp.where(_inside(X, Min, Max, min, max), Out_grad, Out_grad.dtype.type(0))


@kernel("clip_double_grad", place=BOTH, dtypes=REAL)
def clip_double_grad(
    X: Array,
    grad_x_grad: Array,
    Min: Array | None = None,
    Max: Array | None = None,
    *,
    min: float,
    max: float,
    xp: ArrayModule,
) -> Array:
    """grad_x@GRAD strictly between the bounds, else 0."""
    return xp.where(_inside(X, Min, Max, min, max), grad_x_grad, grad_x_grad.dtype.type(0))


# increment ------------------------------------------------------------------------------------------------------------
@kernel("increment", place=BOTH, dtypes=REAL)
def increment(X: Array, *, step: float, xp: ArrayModule) -> Array:
    """X + step."""
    if X.dtype.kind in "iu" and not math.isfinite(step):
        raise InvalidArgumentError(f"op increment: step is {step}; expected a finite one, since X is {X.dtype}")
    return xp.add(X, X.dtype.type(math.trunc(step) if X.dtype.kind in "iu" else step))


# lerp -----------------------------------------------------------------------------------------------------------------
@kernel("lerp", place=BOTH, dtypes=REAL_FLOATS)
@rounded_once
def lerp(X: Array, Y: Array, Weight: Array) -> Array:
    """X + Weight (Y - X)."""
    return X + Weight * (Y - X)


@kernel("lerp_grad", place=BOTH, dtypes=REAL_FLOATS)
@rounded_once
def lerp_grad(
    X: Array, Y: Array, Weight: Array, Out_grad: Array, *, ctx: KernelContext, xp: ArrayModule
) -> tuple[Array | None, Array | None]:
    """Shares of Out@GRAD, summed where X or Y was broadcast."""
    # Weight may be of the highest rank, and the one input that is not broadcast
    by_y = xp.broadcast_to(Out_grad * Weight, Out_grad.shape)
    dx = sum_to(Out_grad - by_y, align(X, Out_grad, -1)[0], X) if ctx.wants("X@GRAD") else None
    return dx, sum_to(by_y, align(Y, Out_grad, -1)[0], Y) if ctx.wants("Y@GRAD") else None


# scale ----------------------------------------------------------------------------------------------------------------
def _scaled(
    x: Array,
    scale_tensor: Array | None,
    scale: float,
    bias: float,
    bias_after_scale: bool,
    out: Array | None,
    xp: ArrayModule,
) -> Array:
    if x.dtype.kind == "b":
        shifted = x if bias_after_scale or not bias else xp.ones_like(x)
        factor = bool(scale) if scale_tensor is None else scale_tensor.reshape(()).astype(bool)
        result = xp.logical_and(shifted, factor)
        return xp.ones_like(x) if bias and bias_after_scale else result
    convert = x.dtype.type if x.dtype.kind != "c" and x.dtype.kind not in "iu" else _whole(x.dtype)
    factor = convert(scale) if scale_tensor is None else scale_tensor.reshape(()).astype(x.dtype)
    shift = convert(bias)
    if scale == -1 and not shift and scale_tensor is None:
        return xp.negative(x, out=out)  # of complex infinities a product has NaN
    if not shift:
        return xp.multiply(x, factor, out=out)
    if scale_tensor is None and factor == 1:
        return xp.add(x, shift, out=out)
    if bias_after_scale:
        result = xp.multiply(x, factor, out=out)
        result += shift
        return result
    result = xp.add(x, shift, out=out)
    result *= factor
    return result


def _whole(dtype: np.dtype[Any]) -> Callable[..., Any]:
    """Conversion of a float attribute for integers (cut towards zero, wrapped) and complex numbers."""
    if dtype.kind == "c":
        return dtype.type
    return lambda value: np.array(math.trunc(value)).astype(dtype)[()]


def _one_ufunc(call: KernelSpecialization) -> Callable[..., Any] | None:
    """A product or a sum alone, of floats."""
    dtype, attrs = call.dtypes["X"][0], call.attrs
    if dtype.kind != "f" or call.has_input("ScaleTensor"):
        return None
    # an array of rank 0 is the operand that a ufunc takes in soonest
    if not attrs["bias"]:
        return partial(call.xp.multiply, call.xp.asarray(attrs["scale"], dtype))
    return partial(call.xp.add, call.xp.asarray(attrs["bias"], dtype)) if attrs["scale"] == 1 else None


@kernel("scale", place=BOTH, dtypes=ALL_DTYPES, specialize=_one_ufunc)
def scale(
    X: Array,
    ScaleTensor: Array | None = None,
    *,
    scale: float,
    bias: float,
    bias_after_scale: bool,
    out: Array | None = None,
    xp: ArrayModule,
) -> Array:
    """scale X + bias, or scale (X + bias)."""
    return _scaled(X, ScaleTensor, scale, bias, bias_after_scale, out, xp)


@kernel("scale", place=BOTH, dtypes=ALL_DTYPES)
def scale_rows(
    X: SelectedRows,
    ScaleTensor: Array | None = None,
    *,
    scale: float,
    bias: float,
    bias_after_scale: bool,
    xp: ArrayModule,
) -> SelectedRows:
    """The same for every value of the rows."""
    value = _scaled(X.value, ScaleTensor, scale, bias, bias_after_scale, None, xp)
    return with_values(X, value)


# sign -----------------------------------------------------------------------------------------------------------------
@kernel("sign", place=BOTH, dtypes=REAL)
def sign(X: Array, *, xp: ArrayModule) -> Array:
    """-1, 0 or 1."""
    return xp.sign(X)


# sum ------------------------------------------------------------------------------------------------------------------
def _added(arrays: Sequence[Array], xp: ArrayModule) -> Array:
    """Sum of dense arrays of one shape; those without elements add nothing."""
    filled = [a for a in arrays if a.size] or arrays[:1]
    first = filled[0]
    if len(filled) == 1:
        return first.copy()
    work = accumulator(first.dtype)
    total = xp.add(first, filled[1], dtype=work)
    for a in filled[2:]:
        total = xp.add(total, a, out=total if total.shape == first.shape and total.ndim else None)
    return total.astype(first.dtype, copy=False)


def _dense(x: Array | LoDTensor | SelectedRows, xp: ArrayModule) -> Array:
    if isinstance(x, SelectedRows):
        return dense_rows(x, xp)
    return x.array if isinstance(x, LoDTensor) else x


@kernel("sum", place=BOTH, dtypes=NUMBERS, deterministic={"cpu"})
def sum_dense(X: list[Array], *, xp: ArrayModule) -> Array:
    """Sum of tensors, among which there may be SelectedRows."""
    return _added([_dense(x, xp) for x in X if x is not None], xp)


@kernel("sum", place=BOTH, dtypes=NUMBERS)
def sum_rows(X: list[SelectedRows], *, xp: ArrayModule) -> Array | SelectedRows:
    """SelectedRows; a dense tensor among them makes the result dense.

    On the host each row is listed once, in ascending order; a device does not wait for the number of rows.
    """
    given = [x for x in X if x is not None]
    if not all(isinstance(x, SelectedRows) for x in given):
        return _added([_dense(x, xp) for x in given], xp)
    rows = xp.concatenate([x.rows for x in given])
    value = xp.concatenate([x.value for x in given])
    total = SelectedRows(rows, value, given[0].height, place=given[0].place, check=False)
    return total.merged() if xp is np else total


@kernel("sum", place=BOTH, dtypes=NUMBERS)
def sum_arrays(X: list[LoDTensorArray], *, xp: ArrayModule) -> LoDTensorArray:
    """Arrays added element by element; where one has no element, the others count."""
    result = LoDTensorArray()
    given = [a for a in X if a is not None]
    for i in range(max(map(len, given))):
        tensors = [t for a in given if i < len(a) and (t := a[i]) is not None]
        if tensors:
            total = _added([t.array for t in tensors], xp)
            result.append(
                LoDTensor(total, [list(level) for level in tensors[0].lod], place=tensors[0].place, check=False)
            )
        else:
            result.append(None)
    return result
