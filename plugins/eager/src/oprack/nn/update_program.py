"""The program that an optimizer appends for eager parameters, and norms over parts of them."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

import numpy as np
from oprack.eager_tensor import Tensor
from oprack.errors import UnimplementedError
from oprack.layers import unique_name
from oprack.layers.variable import Parameter as ParameterVariable
from oprack.layers.variable import Variable
from oprack.program import ParameterInfo, Program
from oprack.tensor import LoDTensor, SelectedRows
from oprack.types import GRAD_SUFFIX, VarType


def norm_clips(optimizer: Any) -> list[Any]:
    """The clips of an optimizer that go by norms; those that go element by element need no other rank."""
    clips = getattr(optimizer, "clips", None) or [getattr(optimizer, "grad_clip", None)]
    return [clip for clip in clips if clip is not None and not getattr(clip, "elementwise", False)]


def clip_factors(optimizer: Any, parameters: Sequence[Tensor], squares: np.ndarray) -> np.ndarray:
    """What the gradient of each parameter is multiplied by.

    Args:
        optimizer: The optimizer, which knows the clip of each parameter.
        parameters: Its parameters.
        squares: The sum of the squares of each gradient, over all ranks.

    Returns:
        A factor for each parameter.

    Raises:
        UnimplementedError: A clip can't say its factors.
    """
    found = np.ones(len(parameters))
    for clip in norm_clips(optimizer):
        if not hasattr(clip, "factors"):
            raise UnimplementedError(
                f"{type(optimizer).__name__}: {type(clip).__name__} has no method factors(squares), by which gradients "
                "are clipped that lie in parts on several ranks; call oprack.parallel.clip_grad_norm(parameters, norm) "
                "before step()"
            )
        chosen = [
            k
            for k, p in enumerate(parameters)
            if getattr(getattr(p, "attr", None), "need_clip", True) and optimizer.clip_of(p) is clip
        ]
        found[chosen] = clip.factors(squares[chosen])
    return found


def square(value: Any) -> float:
    """The sum of the squares of an array's elements; of half floats in single precision."""
    flat = value.reshape(-1)
    if flat.dtype.itemsize < 4:
        flat = flat.astype(np.float32)
    return float(np.vdot(flat, flat).real) if flat.size else 0.0


def square_of(gradient: LoDTensor | SelectedRows) -> float:
    """The sum of the squares of a gradient; rows that are listed twice count as their sum."""
    return square(gradient.to_dense() if isinstance(gradient, SelectedRows) else gradient.array)


def scaled(gradient: LoDTensor | SelectedRows, factor: float) -> Any:
    """A gradient times a factor."""
    if factor == 1.0:
        return gradient
    if isinstance(gradient, SelectedRows):
        value = gradient.value * gradient.value.dtype.type(factor)
        return SelectedRows(gradient.rows, value, gradient.height, place=gradient.place, check=False)
    return LoDTensor(gradient.array * gradient.array.dtype.type(factor), place=gradient.place)


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
