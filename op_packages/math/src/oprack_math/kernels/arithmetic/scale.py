"""Kernels of scale."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from oprack.kernel import Array, ArrayModule, KernelSpecialization, kernel
from oprack.tensor import SelectedRows
from oprack.types import ALL_DTYPES

from oprack_math.kernels._rows import with_values
from oprack_math.kernels._sets import BOTH


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
    if dtype.kind != "f" or call.given("ScaleTensor"):
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
