"""Kernels of clip, with gradients to second order."""

from __future__ import annotations

import math

import numpy as np
from oprack.device import merged_rows
from oprack.errors import InvalidArgumentError
from oprack.kernel import Array, ArrayModule, kernel
from oprack.tensor import SelectedRows

from oprack_math.kernels._sets import BOTH, REAL


def _bounds(x: Array, lower: Array | None, upper: Array | None, low: float, high: float) -> tuple[Array | int, Array]:
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
    low, high = _bounds(x, lower, upper, low, high)
    return xp.minimum(xp.maximum(x, low, out=out), high, out=out)


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
    low, high = _bounds(x, lower, upper, low, high)
    return (x > low) & (x < high)


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
