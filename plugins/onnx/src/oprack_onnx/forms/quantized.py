"""Tensors of small integers.

What is rounded to multiples of one step, around 0, is written as Paddle writes it: kernels on bytes look for that.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from oprack.types import VarType

from oprack_onnx.forms.images import conv
from oprack_onnx.table import form
from oprack_onnx.values import Dims, Node, Value, dtype_of
from oprack_onnx.writer import Writer

Results = list["Value | None"]
GREATEST = 127
"""The greatest integer of 8 bits, which Paddle's scales stand for."""


def _is_around_zero(zero: Value | None) -> bool:
    """Whether a zero point is known to be 0."""
    return zero is None or (zero.constant is not None and not np.any(zero.constant))


def _scale(scale: Value, w: Writer) -> Value | None:
    """Paddle's scale for a step that is one known number; None for another one."""
    step = scale.constant
    if step is None or step.size != 1 or step.dtype != np.float32 or not 1e-30 < float(step.reshape(-1)[0]) < 1e30:
        return None
    return w.constant([float(step.reshape(-1)[0]) * GREATEST], VarType.FP32)


def _quantized(x: Value, scale: Value, zero: Value | None, w: Writer, attrs: dict[str, Any], dtype: VarType) -> Value:
    """x as integers, with what Paddle's op gives kept beside it where it is one of steps around 0."""
    wide = _scale(scale, w) if dtype is VarType.INT8 and x.dtype is VarType.FP32 and _is_around_zero(zero) else None
    if wide is None or attrs.get("block_size"):
        inputs = {"x": x, "y_scale": scale, "y_zero_point": zero}
        more = {"axis": 1, "block_size": 0, "output_dtype": int(dtype), "saturate": True} | attrs
        return w.run("onnx_quantize_linear", inputs, more, out="y", dtype=dtype, shape=x.shape)
    given = {"X": x, "Scale": wide, "ZeroPoint": w.constant([0], VarType.FP32)}
    linear = {"quant_axis": -1, "bit_length": 8, "round_type": 0, "is_test": True}
    numbers = w.run("quantize_linear", given, linear, out="Y", dtype=VarType.FP32, shape=x.shape)
    out = w.run(
        "cast", {"X": numbers}, {"in_dtype": int(VarType.FP32), "out_dtype": int(dtype)}, dtype=dtype, shape=x.shape
    )
    return out


def _restored(x: Value, scale: Value, zero: Value | None, w: Writer, attrs: dict[str, Any]) -> Value:
    """What integers stand for; of known ones that is worked out once."""
    known = [v.constant if v is not None else np.zeros(1) for v in (x, scale, zero)]
    axis = int(attrs.get("axis", 1))
    if all(k is not None for k in known) and not attrs.get("block_size"):
        held, step, start = (np.asarray(k) for k in known)
        spread = [_along(v, held.ndim, axis) for v in (step, start)]
        made = (held.astype(np.float32) - spread[1].astype(np.float32)) * spread[0].astype(np.float32)
        return w.parameter(f"{x.name}.restored", made.astype(step.dtype))
    numbers = _numbers_of(x, w) if _is_around_zero(zero) else None
    wide = _scale(scale, w) if numbers is not None else None
    if numbers is None or wide is None:
        inputs = {"x": x, "x_scale": scale, "x_zero_point": zero}
        more = {"axis": axis, "block_size": int(attrs.get("block_size", 0))}
        return w.run("onnx_dequantize_linear", inputs, more, out="y", dtype=scale.dtype, shape=x.shape)
    given = {"X": numbers, "Scale": wide, "ZeroPoint": w.constant([0], VarType.FP32)}
    return w.run(
        "dequantize_linear", given, {"quant_axis": -1, "bit_length": 8}, out="Y", dtype=VarType.FP32, shape=x.shape
    )


def _along(value: np.ndarray, rank: int, axis: int) -> np.ndarray:
    """A scale or zero point, ready to be used with a tensor of this rank."""
    if value.size == 1:
        return value.reshape(())
    dims = [1] * rank
    dims[axis] = -1
    return value.reshape(dims)


def _numbers_of(x: Value, w: Writer) -> Value | None:
    """The integers as Paddle's op gave them, of which x are bytes; None where something else made x."""
    made = next((op for op in reversed(w.block.ops) if x.name in op.output_arg_names()), None)
    source = made.input("X")[0] if made is not None and made.type == "cast" else ""
    first = next((op for op in reversed(w.block.ops) if source in op.output_arg_names()), None)
    return Value(source, VarType.FP32, x.shape) if first is not None and first.type == "quantize_linear" else None


@form("QuantizeLinear")
def quantize_linear(node: Node, w: Writer) -> Results:
    """quantize_linear for steps around 0, else onnx_quantize_linear."""
    zero = node.get(2)
    asked = int(node.attrs.get("output_dtype", 0))
    dtype = zero.dtype if zero is not None else dtype_of(asked, node.where) if asked else VarType.UINT8
    attrs = {"axis": int(node.attrs.get("axis", 1)), "block_size": int(node.attrs.get("block_size", 0))}
    attrs |= {"saturate": bool(node.attrs.get("saturate", 1))}
    return [_quantized(node.input(0), node.input(1), zero, w, attrs, dtype)]


@form("DequantizeLinear")
def dequantize_linear(node: Node, w: Writer) -> Results:
    """A parameter of known integers; dequantize_linear of what quantize_linear gave, else onnx_dequantize_linear."""
    attrs = {"axis": int(node.attrs.get("axis", 1)), "block_size": int(node.attrs.get("block_size", 0))}
    asked = int(node.attrs.get("output_dtype", 0))
    out = _restored(node.input(0), node.input(1), node.get(2), w, attrs)
    return [w.cast(out, dtype_of(asked, node.where)) if asked else out]


@form("QLinearConv")
def qlinear_conv(node: Node, w: Writer) -> Results:
    """conv2d of what the integers stand for, where the filters are known, rounded again; else onnx_qlinear_conv."""
    x_scale, filters, step, bias = node.input(1).constant, node.input(3), node.input(4).constant, node.get(8)
    if filters.constant is None or filters.rank != 4 or step is None or x_scale is None or x_scale.size != 1:
        return []
    image = _restored(node.input(0), node.input(1), node.get(2), w, {})
    kernel = _restored(filters, node.input(4), node.get(5), w, {"axis": 0})
    inputs: list[Value | None] = [image, kernel]
    if bias is not None:
        if bias.constant is None:
            return []
        wide = bias.constant.astype(np.float64) * x_scale.astype(np.float64).reshape(()) * step.reshape(-1)
        inputs.append(w.parameter(f"{bias.name}.restored", wide.astype(np.float32)))
    types: list[tuple[VarType, Dims | None, VarType] | None] = [(VarType.FP32, node.out_shape(), VarType.LOD_TENSOR)]
    inner = Node("Conv", "", node.opset, inputs, node.attrs, types, ["convolved"], node.where, node.given)
    (found,) = conv(inner, w)
    assert found is not None
    return [_quantized(found, node.input(6), node.get(7), w, {}, node.input(7).dtype)]
