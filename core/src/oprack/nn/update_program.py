"""The program that an optimizer appends for eager parameters."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

from oprack.errors import UnimplementedError
from oprack.layers import unique_name
from oprack.layers.variable import Parameter as ParameterVariable
from oprack.layers.variable import Variable
from oprack.nn.part_norms import norm_clips
from oprack.op.sbp import SbpContext, split
from oprack.packs.manager import default_manager
from oprack.parallel.layouts.signatures import candidates
from oprack.program import ParameterInfo, Program
from oprack.tensor.eager_tensor import Tensor
from oprack.types import GRAD_SUFFIX, VarType

_LENGTH = 7
"""Of the vectors by which an optimizer is tried: nothing else in its program has this size."""


def update_program(
    optimizer: Any, chosen: Sequence[Tensor], shapes: Sequence[Sequence[int]], sparse: Sequence[bool], in_parts: bool
) -> tuple[Program, Program, Any]:
    """Write the program that updates parameters by variables of their names.

    Args:
        optimizer: The optimizer.
        chosen: The parameters.
        shapes: A shape for each.
        sparse: Whether the gradient of each is SelectedRows.
        in_parts: Whether clips by norms are left out.

    Returns:
        (program, startup program, a copy of the optimizer that knows the variables of its state).
    """
    program, startup = Program(), Program()
    block = program.global_block()
    pairs = []
    for p, shape, rows in zip(chosen, shapes, sparse, strict=True):
        name, attr = str(p.name), getattr(p, "attr", None)
        desc = block.create_var(name, dtype=p.dtype, shape=shape, persistable=True, is_parameter=True)
        program.parameters[name] = (
            ParameterInfo()
            if attr is None
            else ParameterInfo(attr.learning_rate, attr.regularizer, attr.need_clip, attr.initializer)
        )
        kind = VarType.SELECTED_ROWS if rows else VarType.LOD_TENSOR
        dtype = p.dtype if p._grad is None else p._grad.dtype
        grad = block.create_var(f"{name}{GRAD_SUFFIX}", type=kind, dtype=dtype, shape=shape)
        pairs.append((ParameterVariable(program, block, desc), Variable(program, block, grad)))
    writer = optimizer.without_norm_clips() if in_parts and norm_clips(optimizer) else copy.copy(optimizer)
    writer.forget_program()
    with unique_name.guard():
        writer.apply_gradients(pairs, startup)
    return program, startup, writer


def require_elementwise(optimizer: Any, parameters: Sequence[Tensor], owner: str) -> None:
    """Raise UnimplementedError unless an optimizer's program may be run on any part of its parameters' elements.

    Each op that reads a parameter, its gradient or its state must have a rule by which all of them may be split.

    Args:
        optimizer: The optimizer.
        parameters: The parameters.
        owner: Who runs it on parts, for messages.
    """
    shapes = [(_LENGTH,)] * len(parameters)
    program, _, _ = update_program(optimizer, parameters, shapes, [False] * len(parameters), True)
    block = program.global_block()
    for op in block.ops:
        dims = {
            slot: [tuple(block.var(n).shape or ()) for n in names]
            for slot, names in (*op.inputs.items(), *op.outputs.items())
        }
        split_in = {slot for slot in op.inputs if (_LENGTH,) in dims[slot]}
        split_out = {slot for slot in op.outputs if (_LENGTH,) in dims[slot]}
        info = default_manager().op_info(op.type)
        found = candidates(info.sbp, SbpContext(op.type, op.attrs, dims))
        if split_in and not any(
            all((s.inputs.get(slot) == split(0)) == (slot in split_in) for slot in op.inputs)
            and all(s.outputs.get(slot) == split(0) for slot in split_out)
            for s in found
        ):
            raise UnimplementedError(
                f"{owner}: {type(optimizer).__name__} runs op {op.type} (pack {info.pack}), which has no rule by which "
                "it may be computed on a part of a parameter's elements; expected updates that go element by element, "
                "as those of SGD, Momentum or Adam"
            )
