"""Ops of programs that others compute on parts, and their gradients."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from oprack.desc import OpDesc
from oprack.errors import UnimplementedError
from oprack.op.attrs import COMMON_ATTRS
from oprack.op.desc_rules import make_grad_ops
from oprack.op.grad import GradOp
from oprack.op.info import OpInfo
from oprack.packs.manager import default_manager
from oprack.parallel.eager.via import op_on_parts
from oprack.parallel.layouts.signatures import Choice
from oprack.parallel.programs.facts import arguments


def forward_on_parts(
    op: OpDesc, info: OpInfo, attrs: Mapping[str, Any], choice: Choice, slots_in: Sequence[str], shapes: Sequence[Any]
) -> OpDesc:
    """The op that stands for `op`: the op itself, or a new one of the type that its signature names."""
    found, given = op_on_parts(info, attrs, choice, slots_in, shapes)
    if found is info:
        return op
    return _with_notes(OpDesc(found.type, op.inputs, op.outputs), given, found, op)


def gradient_on_parts(op: OpDesc, grad: GradOp, forward: OpDesc) -> tuple[OpDesc, GradOp]:
    """A gradient op and what its maker said, in terms of the op that stands for the forward op.

    Args:
        op: The gradient op of the program.
        grad: What the maker of the program's forward op said.
        forward: What stands for that op.

    Returns:
        The same, or those of the gradient op of `forward`, which has the gradients that `op` has.

    Raises:
        UnimplementedError: The stand-in has several gradient ops.
    """
    info = default_manager().op_info(forward.type)
    grads = make_grad_ops(info, forward)
    if len(grads) != 1:
        raise UnimplementedError(f"distribute: op {forward.type} has {len(grads)} gradient ops; expected one")
    (made,) = grads
    if made.type == op.type:
        return op, grad
    names: dict[tuple[str, str], list[str]] = {}
    for slots, refs in ((op.inputs, grad.inputs), (op.outputs, grad.outputs)):
        for slot, _, name in arguments(slots):
            names.setdefault((refs[slot].role, refs[slot].slot), []).append(name)

    def variables(role: str, slot: str) -> list[str]:
        if role in ("input", "output"):
            return list((forward.inputs if role == "input" else forward.outputs).get(slot, ()))
        return names.get((role, slot), [])

    inputs = {s: v for s, ref in made.inputs.items() if (v := variables(ref.role, ref.slot))}
    outputs = {s: v for s, ref in made.outputs.items() if (v := variables(ref.role, ref.slot))}
    declared = default_manager().op_info(made.type)
    return _with_notes(OpDesc(made.type, inputs, outputs), made.attrs, declared, op), made


def _with_notes(found: OpDesc, attrs: Mapping[str, Any], info: OpInfo, noted: OpDesc) -> OpDesc:
    """Give an op its attributes, and the notes of the framework that another one has."""
    for name, value in attrs.items():
        found.set_attr(name, value, info.proto.attrs[name].type)
    for name in COMMON_ATTRS:
        if name in noted.attrs:
            found.set_attr(name, noted.attrs[name], noted.attr_types[name])
    found.origin = noted.origin
    return found
