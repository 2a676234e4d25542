"""Tensors of small integers."""

from __future__ import annotations

from oprack.types import VarType

from oprack_onnx.table import form
from oprack_onnx.values import Node, Value, dtype_of
from oprack_onnx.writer import Writer

Results = list["Value | None"]


@form("QuantizeLinear")
def quantize_linear(node: Node, w: Writer) -> Results:
    """onnx_quantize_linear."""
    zero = node.get(2)
    asked = int(node.attrs.get("output_dtype", 0))
    dtype = zero.dtype if zero is not None else dtype_of(asked, node.where) if asked else VarType.UINT8
    attrs = {"axis": int(node.attrs.get("axis", 1)), "block_size": int(node.attrs.get("block_size", 0))}
    attrs |= {"output_dtype": int(dtype), "saturate": bool(node.attrs.get("saturate", 1))}
    inputs = {"x": node.input(0), "y_scale": node.input(1), "y_zero_point": zero}
    return [w.run("onnx_quantize_linear", inputs, attrs, out="y", dtype=dtype, shape=node.input().shape)]


@form("DequantizeLinear")
def dequantize_linear(node: Node, w: Writer) -> Results:
    """onnx_dequantize_linear."""
    attrs = {"axis": int(node.attrs.get("axis", 1)), "block_size": int(node.attrs.get("block_size", 0))}
    inputs = {"x": node.input(0), "x_scale": node.input(1), "x_zero_point": node.get(2)}
    dtype = node.input(1).dtype
    asked = int(node.attrs.get("output_dtype", 0))
    out = w.run("onnx_dequantize_linear", inputs, attrs, out="y", dtype=dtype, shape=node.input().shape)
    return [w.cast(out, dtype_of(asked, node.where)) if asked else out]
