"""Convolutions and products with what follows them, by the kernels of the plain ops that they stand for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

import numpy as np
from oprack.kernel import Array, KernelContext, kernel
from oprack.tensor import numpy_dtype
from oprack.types import FLOATS

from oprack_nn.ops.post_ops import RESIDUAL, attributes
from oprack_nn.ops.precision import rounds_output
from oprack_nn.ops.with_post_ops import WINDOW

_Given = TypeVar("_Given", "Array", "Array | None")


def widened(x: _Given) -> _Given:
    """An array as it is, or float32 numbers where it has bfloat16."""
    return x.astype(np.float32) if x is not None and x.dtype.itemsize == 2 else x


def as_output(y: Array, attrs: Mapping[str, Any]) -> Array:
    """A result, rounded to bfloat16 where the attributes say so."""
    return y.astype(numpy_dtype("bfloat16")) if rounds_output(attrs) else y


def after(
    y: Array, axis: int, bias: Array | None, residual: Array | None, post_ops: Sequence[str], ctx: KernelContext
) -> Array:
    """What follows the main step: the bias along an axis, and the post-ops. ctx: the context of the fused op."""
    if bias is not None:
        y = ctx.run_op("elementwise_add", {"X": y, "Y": bias}, {"axis": axis})
    for text in post_ops:
        if text == RESIDUAL:
            y = ctx.run_op("elementwise_add", {"X": y, "Y": residual}, {"axis": -1})
        else:
            op_type, attrs = attributes(text)
            y = ctx.run_op(op_type, {"X": y}, attrs)
    return y


@kernel("conv2d_post_ops", place=("cpu", "cuda"), dtypes=FLOATS)
def conv2d_post_ops(
    Input: Array, Filter: Array, Bias: Array | None = None, Residual: Array | None = None, *, ctx: KernelContext
) -> Array:
    return as_output(convolution(widened(Input), Filter, Bias, widened(Residual), ctx.attrs, ctx), ctx.attrs)


def own_attrs(attrs: Mapping[str, Any]) -> dict[str, Any]:
    """The attributes of the convolution itself."""
    return {name: attrs[name] for name in WINDOW}


def convolution(
    x: Array, w: Array, bias: Array | None, residual: Array | None, attrs: Mapping[str, Any], ctx: KernelContext
) -> Array:
    """The convolution, then what follows it."""
    y = ctx.run_op("conv2d", {"Input": x, "Filter": w}, own_attrs(attrs))
    return after(y, 1, bias, residual, attrs["post_ops"], ctx)


@kernel("conv2d_transpose_post_ops", place=("cpu", "cuda"), dtypes=FLOATS)
def conv2d_transpose_post_ops(Input: Array, Filter: Array, Bias: Array | None = None, *, ctx: KernelContext) -> Array:
    return transposed(Input, Filter, Bias, ctx.attrs, ctx)


def transposed(x: Array, w: Array, bias: Array | None, attrs: Mapping[str, Any], ctx: KernelContext) -> Array:
    """The transposed convolution, then what follows it."""
    own = own_attrs(attrs) | {"output_padding": attrs["output_padding"]}
    y = ctx.run_op("conv2d_transpose", {"Input": x, "Filter": w}, own)
    return after(y, 1, bias, None, attrs["post_ops"], ctx)


@kernel("matmul_post_ops", place=("cpu", "cuda"), dtypes=FLOATS)
def matmul_post_ops(
    X: Array, Y: Array, Bias: Array | None = None, Residual: Array | None = None, *, ctx: KernelContext
) -> Array:
    return product(X, Y, Bias, Residual, ctx.attrs, ctx)


def product(
    x: Array,
    y: Array,
    bias: Array | None,
    residual: Array | None,
    attrs: Mapping[str, Any],
    ctx: KernelContext,
) -> Array:
    """The product, then what follows it."""
    if attrs["trans_x"]:
        x = x.swapaxes(-1, -2)
    rows = attrs["x_num_col_dims"] if attrs["x_num_col_dims"] > 0 else x.ndim - 1
    out = ctx.run_op("mul", {"X": x, "Y": y}, {"x_num_col_dims": rows, "y_num_col_dims": 1})
    return after(out, -1, bias, residual, attrs["post_ops"], ctx)
