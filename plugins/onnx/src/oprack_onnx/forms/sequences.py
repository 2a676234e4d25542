"""Sequences and values that may be absent."""

from __future__ import annotations

import numpy as np
from oprack.types import VarType

from oprack_onnx.table import form
from oprack_onnx.values import Node, Value, dtype_of
from oprack_onnx.writer import Writer

Results = list["Value | None"]


@form("SequenceEmpty")
def sequence_empty(node: Node, w: Writer) -> Results:
    """onnx_sequence_empty."""
    dtype = dtype_of(int(node.attrs.get("dtype", 1)), node.where)
    attrs = {"dtype": int(dtype)}
    kind = VarType.LOD_TENSOR_ARRAY
    return [w.run("onnx_sequence_empty", {}, attrs, out="output", dtype=dtype, kind=kind)]


@form("Optional")
def optional(node: Node, w: Writer) -> Results:
    """A sequence of one tensor, or of none."""
    kind = VarType.LOD_TENSOR_ARRAY
    if not node.has(0):
        return [
            w.run("onnx_sequence_empty", {}, {"dtype": int(VarType.FP32)}, out="output", dtype=VarType.FP32, kind=kind)
        ]
    x = node.input()
    if x.kind is kind:
        raise node.lacking("its value is a sequence; expected a tensor")
    return [w.run("onnx_sequence_construct", {"inputs": [x]}, out="output_sequence", kind=kind)]


@form("OptionalHasElement")
def has_element(node: Node, w: Writer) -> Results:
    """What is known when the model is read, or whether a sequence has a tensor."""
    if not node.has(0) or node.input().kind is not VarType.LOD_TENSOR_ARRAY:
        return [w.parameter(node.outputs[0], np.array(node.has(0)))]
    inputs = {"input_sequence": node.input()}
    return [w.run("onnx_sequence_length", inputs, {"per_value": True}, out="length", dtype=VarType.BOOL, shape=())]


@form("OptionalGetElement")
def get_element(node: Node, w: Writer) -> Results:
    """The tensor itself, or the first one of a sequence."""
    x = node.input()
    wanted = node.types[0][2] if node.types and node.types[0] is not None else VarType.LOD_TENSOR
    if x.kind is not VarType.LOD_TENSOR_ARRAY or wanted is VarType.LOD_TENSOR_ARRAY:
        return [w.run("assign", {"X": x}, shape=x.shape, kind=x.kind)]
    inputs = {"input_sequence": x, "position": w.constant(0)}
    return [w.run("onnx_sequence_at", inputs, out="tensor", shape=node.out_shape())]
