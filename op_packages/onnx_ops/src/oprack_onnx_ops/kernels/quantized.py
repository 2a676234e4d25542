"""Kernels of ops.quantized. Products of 8-bit numbers are exact in float64, and BLAS multiplies those."""

from __future__ import annotations

import numpy as np
from oprack.kernel import Array, kernel
from oprack.tensor import numpy_dtype

from oprack_onnx_ops.kernels.windows import Windows, convolution


def _spread(value: Array, like: Array, axis: int, block: int) -> Array:
    """A scale or zero point in a shape that broadcasts with `like`."""
    if value.size == 1 and value.ndim <= 1:
        return value.reshape(())
    if block:
        return np.repeat(value, block, axis)[tuple(slice(n) for n in like.shape)]
    shape = [1] * like.ndim
    shape[axis] = value.size
    return value.reshape(shape)


def saturated(x: Array, dtype: np.dtype) -> Array:
    """Rounded numbers, kept within an integer dtype."""
    limits = np.iinfo(dtype)
    return np.clip(x, limits.min, limits.max).astype(dtype)


@kernel("onnx_quantize_linear", place="cpu")
def quantize_linear(
    x: Array,
    y_scale: Array,
    y_zero_point: Array | None = None,
    *,
    axis: int,
    block_size: int,
    output_dtype: int,
    saturate: bool,
) -> Array:
    dtype = numpy_dtype(output_dtype) if y_zero_point is None else y_zero_point.dtype
    wide = np.float32 if x.dtype.itemsize < 4 or x.dtype.kind in "iu" else x.dtype
    scaled = x.astype(wide) / _spread(y_scale, x, axis, block_size).astype(wide)
    zero = 0 if y_zero_point is None else _spread(y_zero_point, x, axis, block_size).astype(wide)
    return saturated(np.rint(scaled) + zero, dtype)


@kernel("onnx_dequantize_linear", place="cpu")
def dequantize_linear(
    x: Array, x_scale: Array, x_zero_point: Array | None = None, *, axis: int, block_size: int
) -> Array:
    dtype = x_scale.dtype
    wide = np.float32 if dtype.itemsize < 4 else dtype
    values = x.astype(wide)
    if x_zero_point is not None:
        values = values - _spread(x_zero_point, x, axis, block_size).astype(wide)
    return (values * _spread(x_scale, x, axis, block_size).astype(wide)).astype(dtype)


def _shifted(x: Array, zero: Array | None, *, rows: bool) -> Array:
    """float64 numbers less their zero point, of which there may be one for each row or column."""
    wide = x.astype(np.float64)
    return wide if zero is None else wide - _for_each(zero, rows=rows)


def _for_each(value: Array, *, rows: bool) -> Array:
    wide = value.astype(np.float64)
    if wide.ndim == 1 and wide.size > 1 and rows:
        return wide[:, None]
    return wide.reshape(()) if wide.size == 1 else wide


@kernel("onnx_matmul_integer", place="cpu")
def matmul_integer(A: Array, B: Array, a_zero_point: Array | None = None, b_zero_point: Array | None = None) -> Array:
    found = np.matmul(_shifted(A, a_zero_point, rows=True), _shifted(B, b_zero_point, rows=False))
    return found.astype(np.int64).astype(np.int32)


@kernel("onnx_qlinear_matmul", place="cpu")
def qlinear_matmul(
    a: Array,
    a_scale: Array,
    a_zero_point: Array,
    b: Array,
    b_scale: Array,
    b_zero_point: Array,
    y_scale: Array,
    y_zero_point: Array,
) -> Array:
    found = np.matmul(_shifted(a, a_zero_point, rows=True), _shifted(b, b_zero_point, rows=False))
    scale = _for_each(a_scale, rows=True) * _for_each(b_scale, rows=False) / _for_each(y_scale, rows=True)
    return saturated(np.rint(found * scale) + _for_each(y_zero_point, rows=True), y_zero_point.dtype)


def _convolved(
    x: Array,
    w: Array,
    zeros: tuple[Array | None, Array | None],
    windows: Windows,
    group: int,
) -> Array:
    image = _shifted(x, zeros[0], rows=False)
    filters = w.astype(np.float64)
    if zeros[1] is not None:
        filters = filters - zeros[1].astype(np.float64).reshape(-1, *(1,) * (w.ndim - 1))
    return convolution(image, filters, windows, group, windows.padded(image, 0))


@kernel("onnx_conv_integer", place="cpu")
def conv_integer(
    x: Array,
    w: Array,
    x_zero_point: Array | None = None,
    w_zero_point: Array | None = None,
    *,
    group: int,
    strides: list[int],
    dilations: list[int],
    pads: list[int],
    auto_pad: str,
) -> Array:
    windows = Windows(x.shape[2:], w.shape[2:], strides, dilations, pads, auto_pad)
    return _convolved(x, w, (x_zero_point, w_zero_point), windows, group).astype(np.int64).astype(np.int32)


@kernel("onnx_qlinear_conv", place="cpu")
def qlinear_conv(
    x: Array,
    x_scale: Array,
    x_zero_point: Array,
    w: Array,
    w_scale: Array,
    w_zero_point: Array,
    y_scale: Array,
    y_zero_point: Array,
    B: Array | None = None,
    *,
    group: int,
    strides: list[int],
    dilations: list[int],
    pads: list[int],
    auto_pad: str,
) -> Array:
    windows = Windows(x.shape[2:], w.shape[2:], strides, dilations, pads, auto_pad)
    found = _convolved(x, w, (x_zero_point, w_zero_point), windows, group)
    shape = (-1, *(1,) * (x.ndim - 2))
    if B is not None:
        found = found + B.reshape(shape)
    scale = x_scale.astype(np.float64).reshape(()) * w_scale.astype(np.float64).reshape(shape) / y_scale.reshape(())
    return saturated(np.rint(found * scale) + y_zero_point.astype(np.float64).reshape(()), y_zero_point.dtype)
