"""Kernels of resampling."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, overload

import numpy as np
from oprack.device import constant
from oprack.kernel import Array, ArrayModule, KernelContext, RequiredArray, kernel
from oprack.tensor import ShapeOnly
from oprack.types import FLOATS, HALF_FLOATS

from oprack_nn.kernels._layout import from_channel_first, to_channel_first
from oprack_nn.ops.resize import channel_order, output_size

# resample -------------------------------------------------------------------------------------------------------------
# Interpolation, one spatial dim after the other: every output is a weighted sum of a few inputs along the dim.
# Largest [out, in] matrix that the adjoint along one dim is done with; above, a scatter does it.
_MATRIX = 1 << 24


def ratio(size: int, out: int, factor: float | None, align_corners: bool) -> np.float32:
    """Distance of samples in the input, in float32 as in Paddle; factor: the scale in effect, or None."""
    if out <= 1:
        return np.float32(0)
    if align_corners:
        return np.float32(size - 1) / np.float32(out - 1)
    return np.float32(1.0 / factor) if factor is not None else np.float32(size) / np.float32(out)


def _linear(step: np.float32, out: int, edges: bool, wide: bool, dtype: np.dtype[Any] | str) -> tuple[Any, Any]:
    k = np.arange(out)
    if edges:
        # Paddle finds the position in float64 in the ops without _v2, in float32 in the others
        real: type[np.floating[Any]] = np.float64 if wide else np.float32
        position = real(step) * (k.astype(real) + real(0.5)) - real(0.5)
        first = np.maximum(position.astype(np.int64), 0)
        fraction = np.maximum(position.astype(np.float32), 0) - first.astype(np.float32)
    else:
        position = step * k.astype(np.float32)
        first = position.astype(np.int64)
        fraction = position - first.astype(np.float32)
    return first + np.arange(2)[:, None], np.stack([np.float32(1) - fraction, fraction]).astype(dtype)


def _cubic(step: np.float32, out: int, align_corners: bool, dtype: np.dtype[Any] | str) -> tuple[Any, Any]:
    k = np.arange(out)
    position = step * k.astype(np.float32) if align_corners else np.float64(step) * (k + 0.5) - 0.5
    position = position.astype(dtype)
    first = np.floor(position).astype(np.int64)
    t = position - first.astype(dtype)
    a = np.asarray(-0.75, dtype)

    def near(x: Array) -> Array:
        return ((a + 2) * x - (a + 3)) * x * x + 1

    def far(x: Array) -> Array:
        return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a

    return first - 1 + np.arange(4)[:, None], np.stack([far(t + 1), near(t), near(1 - t), far(2 - t)]).astype(dtype)


def _nearest(step: np.float32, out: int, align_corners: bool) -> tuple[Any, None]:
    position = step * np.arange(out, dtype=np.float32)
    return (position.astype(np.float64) + (0.5 if align_corners else 0.0)).astype(np.int64)[None], None


def taps(
    method: str,
    size: int,
    out: int,
    factor: float | None,
    align_corners: bool,
    align_mode: int,
    v2: bool,
    dtype: np.dtype[Any] | str,
) -> tuple[Any, Any]:
    """(indices [taps, out], weights [taps, out] or None for 1) along one dim of `size` elements; NumPy arrays.

    method: linear, nearest or bicubic. v2: one of the *_interp_v2 ops.
    """
    step = ratio(size, out, factor, align_corners)
    if method == "nearest":
        index, weight = _nearest(step, out, align_corners)
    elif method == "bicubic":
        index, weight = _cubic(step, out, align_corners, dtype)
    else:
        index, weight = _linear(step, out, align_mode == 0 and not align_corners, not v2, dtype)
    return np.clip(index, 0, size - 1), weight


def resample(x: Array, axis: int, index: Array, weight: Array | None, xp: ArrayModule) -> Array:
    """Weighted sums of elements of x along an axis."""
    if weight is None:
        times, rest = divmod(index.shape[1], x.shape[axis])
        if not rest and (index[0] == np.arange(index.shape[1]) // max(times, 1)).all():
            return x.repeat(times, axis=axis)
        return x.take(constant(index[0], xp), axis=axis)
    shape = (-1,) + (1,) * (x.ndim - axis - 1)
    total: Array | Any = None  # an array from the first tap on
    for i, w in zip(index, weight, strict=True):
        part = x.take(constant(i, xp), axis=axis)
        part *= constant(w, xp).reshape(shape)
        if total is None:
            total = part
        else:
            total += part
    return total


def resample_adjoint(y: Array, axis: int, size: int, index: Array, weight: Array | None, xp: ArrayModule) -> Array:
    """The adjoint of `resample` to `size` elements."""
    out = y.shape[axis]
    weight = np.ones(index.shape, y.dtype) if weight is None else weight
    if out * size <= _MATRIX:
        matrix = np.zeros((size, out), y.dtype)
        for i, w in zip(index, weight, strict=True):
            matrix[i, np.arange(out)] += w
        return xp.moveaxis(xp.tensordot(y, constant(matrix, xp), axes=(axis, 1)), -1, axis)
    lines = xp.moveaxis(y, axis, 0)
    x = xp.zeros((size, *lines.shape[1:]), y.dtype)
    shape = (-1,) + (1,) * (lines.ndim - 1)
    for i, w in zip(index, weight, strict=True):
        xp.add.at(x, constant(i, xp), lines * constant(w, xp).reshape(shape))
    return xp.moveaxis(x, 0, axis)


@overload
def numbers(value: Array) -> Sequence[Any]: ...
@overload
def numbers(value: None) -> None: ...
def numbers(value: Array | None) -> Sequence[Any] | None:
    """A small tensor as a list; None when absent."""
    return None if value is None else value.reshape(-1).tolist()


# interp ---------------------------------------------------------------------------------------------------------------
# Interpolation and its gradient: one kernel each for all methods and both generations of ops.
PLACES = ("cpu", "cuda")

SCATTER: dict[str, Any] = {"place": PLACES, "deterministic": {"cpu"}}  # a GPU adds what meets in one place in any order

REALS = FLOATS | HALF_FLOATS

NUMBERS = REALS | {"uint8"}


def _steps(
    spatial: tuple[int, ...],
    out_size: Array | None,
    size_tensor: Sequence[Array],
    scale: Array | None,
    ctx: KernelContext,
    dtype: np.dtype[Any] | str,
) -> list[tuple[int, Array, Array | None]]:
    """[(axis, indices, weights)] per spatial dim that is resampled; [] when the size stays."""
    attrs = ctx.attrs
    sizes = [int(numbers(s)[0]) for s in size_tensor] or None
    out, factors = output_size(spatial, attrs, sizes, numbers(scale), numbers(out_size))
    if tuple(out) == tuple(spatial):
        return []  # Paddle copies X then, whatever the scale
    steps = []
    v2 = "_v2" in ctx.op_type
    for d, (size, n) in enumerate(zip(spatial, out, strict=True)):
        # without _v2 the ratio of the sizes counts
        factor = factors[d] if v2 and factors is not None else None
        how = (attrs["interp_method"], size, n, factor, attrs["align_corners"], attrs["align_mode"], v2)
        steps.append((d + 2, *taps(*how, dtype)))
    return steps


def _work_dtype(dtype: np.dtype[Any], method: str) -> np.dtype[Any] | str:
    """Weighted sums of narrow dtypes run in float32."""
    return dtype if method == "nearest" or dtype.name in FLOATS else "float32"


def interp(
    X: Array,
    OutSize: Array | None = None,
    SizeTensor: Sequence[Array] = (),
    Scale: Array | None = None,
    *,
    data_layout: str,
    interp_method: str,
    ctx: KernelContext,
    xp: ArrayModule,
) -> Array:
    layout = channel_order(data_layout)
    x = to_channel_first(X, layout)
    work = _work_dtype(X.dtype, interp_method)
    steps = _steps(x.shape[2:], OutSize, SizeTensor, Scale, ctx, work)
    if not steps:
        return X.copy()
    y = x.astype(work, copy=False)
    # what is taken as it is gives the same in any order, and the last dim is the cheapest while the others are short
    for axis, index, weight in reversed(steps) if interp_method == "nearest" else steps:
        y = resample(y, axis, index, weight, xp)
    return from_channel_first(y, layout, xp).astype(X.dtype, copy=False)


def interp_grad(
    X: ShapeOnly,
    OutSize: Array | None = None,
    SizeTensor: Sequence[Array] = (),
    Scale: Array | None = None,
    Out_grad: RequiredArray = None,
    *,
    data_layout: str,
    ctx: KernelContext,
    xp: ArrayModule,
) -> Array:
    layout = channel_order(data_layout)
    spatial = to_channel_first(X, layout).shape[2:]
    dy = to_channel_first(Out_grad, layout)
    work = dy.dtype if dy.dtype.name in FLOATS else "float32"
    steps = _steps(spatial, OutSize, SizeTensor, Scale, ctx, work)
    if not steps:
        return Out_grad.copy()
    dx = dy.astype(work, copy=False)
    for axis, index, weight in steps:
        dx = resample_adjoint(dx, axis, spatial[axis - 2], index, weight, xp)
    return from_channel_first(dx, layout, xp).astype(dy.dtype, copy=False)


# affine_grid ----------------------------------------------------------------------------------------------------------


def _line(size: int, align_corners: bool) -> np.ndarray:
    """Places of the pixels of one dim in [-1, 1]."""
    if align_corners:
        return np.linspace(-1, 1, size) if size > 1 else np.zeros(size)
    return (2 * np.arange(size) + 1) / max(size, 1) - 1


def _points(sizes: tuple[int, ...], align_corners: bool, dtype: np.dtype[Any], xp: ArrayModule) -> Array:
    """(x, y, 1) or (x, y, z, 1) of every pixel, [pixels, rank + 1]."""
    axes = np.meshgrid(*(_line(s, align_corners) for s in sizes), indexing="ij")
    table = np.stack([*(a.reshape(-1) for a in axes[::-1]), np.ones(math.prod(sizes))], axis=1)
    return constant(table.astype(dtype), xp)


@kernel("affine_grid", place=PLACES, dtypes=FLOATS)
def affine_grid(
    Theta: Array,
    OutputShape: Array | None = None,
    *,
    output_shape: list[int],
    align_corners: bool,
    xp: ArrayModule,
) -> Array:
    sizes = tuple(int(s) for s in (output_shape if OutputShape is None else OutputShape.tolist())[2:])
    points = _points(sizes, align_corners, Theta.dtype, xp)
    return xp.matmul(points, Theta.transpose(0, 2, 1)).reshape(len(Theta), *sizes, Theta.shape[1])


@kernel("affine_grid_grad", place=PLACES, dtypes=FLOATS)
def affine_grid_grad(
    Theta: ShapeOnly,
    Output_grad: Array,
    OutputShape: Array | None = None,
    *,
    align_corners: bool,
    xp: ArrayModule,
) -> Array:
    n, *sizes, rank = Output_grad.shape
    points = _points(tuple(sizes), align_corners, Output_grad.dtype, xp)
    return xp.matmul(Output_grad.reshape(n, math.prod(sizes), rank).transpose(0, 2, 1), points)


# bicubic_interp -------------------------------------------------------------------------------------------------------
bicubic_interp = kernel("bicubic_interp", place=PLACES, dtypes=FLOATS)(interp)

bicubic_interp_grad = kernel("bicubic_interp_grad", dtypes=FLOATS, **SCATTER)(interp_grad)


# bicubic_interp_v2 ----------------------------------------------------------------------------------------------------
bicubic_interp_v2 = kernel("bicubic_interp_v2", place=PLACES, dtypes=REALS)(interp)

bicubic_interp_v2_grad = kernel("bicubic_interp_v2_grad", dtypes=REALS, **SCATTER)(interp_grad)


# bilinear_interp ------------------------------------------------------------------------------------------------------
bilinear_interp = kernel("bilinear_interp", place=PLACES, dtypes=FLOATS | {"uint8"})(interp)

bilinear_interp_grad = kernel("bilinear_interp_grad", dtypes=FLOATS, **SCATTER)(interp_grad)


# bilinear_interp_v2 ---------------------------------------------------------------------------------------------------
bilinear_interp_v2 = kernel("bilinear_interp_v2", place=PLACES, dtypes=NUMBERS)(interp)

bilinear_interp_v2_grad = kernel("bilinear_interp_v2_grad", dtypes=REALS, **SCATTER)(interp_grad)


# linear_interp --------------------------------------------------------------------------------------------------------
linear_interp = kernel("linear_interp", place=PLACES, dtypes=FLOATS | {"uint8"})(interp)

linear_interp_grad = kernel("linear_interp_grad", dtypes=FLOATS, **SCATTER)(interp_grad)


# linear_interp_v2 -----------------------------------------------------------------------------------------------------
linear_interp_v2 = kernel("linear_interp_v2", place=PLACES, dtypes=NUMBERS)(interp)

linear_interp_v2_grad = kernel("linear_interp_v2_grad", dtypes=REALS, **SCATTER)(interp_grad)


# nearest_interp -------------------------------------------------------------------------------------------------------
nearest_interp = kernel("nearest_interp", place=PLACES, dtypes=FLOATS | {"uint8"})(interp)

nearest_interp_grad = kernel("nearest_interp_grad", dtypes=FLOATS, **SCATTER)(interp_grad)


# nearest_interp_v2 ----------------------------------------------------------------------------------------------------
nearest_interp_v2 = kernel("nearest_interp_v2", place=PLACES, dtypes=NUMBERS | {"int32", "int64"})(interp)

nearest_interp_v2_grad = kernel("nearest_interp_v2_grad", dtypes=REALS, **SCATTER)(interp_grad)


# trilinear_interp -----------------------------------------------------------------------------------------------------
trilinear_interp = kernel("trilinear_interp", place=PLACES, dtypes=FLOATS | {"uint8"})(interp)

trilinear_interp_grad = kernel("trilinear_interp_grad", dtypes=FLOATS, **SCATTER)(interp_grad)


# trilinear_interp_v2 --------------------------------------------------------------------------------------------------
trilinear_interp_v2 = kernel("trilinear_interp_v2", place=PLACES, dtypes=NUMBERS)(interp)

trilinear_interp_v2_grad = kernel("trilinear_interp_v2_grad", dtypes=REALS, **SCATTER)(interp_grad)
