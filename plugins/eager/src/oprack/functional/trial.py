"""Checks by an op's rules whether it would accept a call, without running it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from oprack.eager_tensor import Tensor
from oprack.errors import OprackError
from oprack.functional.creation import to_tensor
from oprack.layers import unique_name
from oprack.layers.framework import program_guard
from oprack.layers.helper import LayerHelper
from oprack.layers.inputs import data
from oprack.layers.variable import Variable
from oprack.op import OpInfo
from oprack.op.proto import AttrProto
from oprack.op.signature import OpSignature, outputs_along_axis, told_outputs
from oprack.packs.manager import default_manager
from oprack.program import Program
from oprack.runtime.infer import RuntimeInferShapeContext
from oprack.types import AttrType, dtype_enum


def call_fits(signature: OpSignature, tensors: Mapping[str, Any], attrs: Mapping[str, Any]) -> bool:
    """Whether an op's attribute checks and shape rule accept a call.

    Args:
        signature: How the op is called.
        tensors: Inputs by parameter name: tensors, arrays or Variables, or lists of them.
        attrs: Attributes by parameter name.

    Returns:
        False if they do not, or if a shape or dtype of an input is unknown.
    """
    proto = signature.proto
    lists = {signature.slots[n].name: list(v) if isinstance(v, list | tuple) else [v] for n, v in tensors.items()}
    try:
        values = {signature.attrs[n].name: _on_the_wire(signature.attrs[n], v) for n, v in attrs.items()}
        number = 1
        if any(s.duplicable for s in proto.outputs.values()):
            declared = told_outputs(proto, values, {slot: len(v) for slot, v in lists.items()})
            first = next((v[0] for v in lists.values() if v), None)
            number = (
                outputs_along_axis(proto, values, None if first is None else first.shape)
                if declared is None
                else declared
            )
        if any(isinstance(v, Variable) for vs in lists.values() for v in vs):
            _append(proto.type, lists, values, number)
        else:
            _ask_rule(default_manager().op_info(proto.type), lists, values, number)
    except (OprackError, AttributeError, LookupError, TypeError, ValueError, ArithmeticError):
        return False
    return True


def _ask_rule(info: OpInfo, lists: Mapping[str, Sequence[Any]], attrs: dict[str, Any], number: int) -> None:
    """Run the shape rule on the values; raises what it raises."""
    attrs = info.checker.check(attrs) if info.checker is not None else attrs
    values = {slot: [(v if isinstance(v, Tensor) else to_tensor(v)).value for v in vs] for slot, vs in lists.items()}
    inputs = {slot: [f"{slot}_{i}" for i in range(len(vs))] for slot, vs in values.items()}
    slots = [s for s in info.proto.outputs.values() if not s.dispensable]
    outputs = {s.name: [f"{s.name}_{i}.out" for i in range(number if s.duplicable else 1)] for s in slots}
    if info.infer_shape is not None:
        info.infer_shape(RuntimeInferShapeContext(info.proto, attrs, values, inputs, outputs))


def _append(op_type: str, lists: Mapping[str, Sequence[Any]], attrs: Mapping[str, Any], number: int) -> None:
    """Append the op to a new program, with variables of the same shapes; raises as `append_op`."""
    with unique_name.guard(), program_guard(Program(), Program()):
        stand_ins = {slot: [_like(v) for v in vs] for slot, vs in lists.items()}
        LayerHelper(op_type).apply(op_type, stand_ins, attrs, num=number)


def _like(value: Any) -> Variable:
    """A variable of the current program with the shape and dtype of a tensor."""
    if isinstance(value, Variable):
        return data(unique_name.generate("input"), list(value.shape), value.dtype, value.lod_level)
    tensor = value if isinstance(value, Tensor) else to_tensor(value)
    return data(unique_name.generate("input"), list(tensor.shape), tensor.dtype, len(tensor.lod))


def _on_the_wire(attr: AttrProto, value: Any) -> Any:
    """The value of an attribute as programs store it, in which a dtype is a number."""
    is_dtype = isinstance(value, str) and attr.type in (AttrType.INT, AttrType.LONG) and attr.name.endswith("dtype")
    return int(dtype_enum(value)) if is_dtype else value
