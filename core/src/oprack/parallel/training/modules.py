"""Modules on several ranks: parameters laid out over a placement, and gradients clipped by the norm of all."""

from __future__ import annotations

import fnmatch
import math
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from oprack.errors import InvalidArgumentError, NotFoundError, PreconditionNotMetError
from oprack.parallel.eager.global_tensor import box_part
from oprack.parallel.layouts.layout import Layout, Placement
from oprack.tensor import SelectedRows
from oprack.tensor.eager_tensor import Tensor

if TYPE_CHECKING:
    from oprack.nn import Module

M = TypeVar("M", bound="Module")


def to_global(module: M, placement: Placement, layouts: Mapping[str, Any] | None = None) -> M:
    """Lay a module's parameters and buffers out over a placement, in place. Every rank must hold the same values.

    Args:
        module: The module.
        placement: The grid of ranks.
        layouts: Path of a parameter, or a pattern such as "blocks.*.weight" -> its sbp; the first that matches counts.
            What matches none is whole on each rank.

    Returns:
        The module itself.

    Raises:
        InvalidArgumentError: A layout does not fit a shape, or a parameter is global already.
        NotFoundError: A pattern matches nothing.
    """
    rules = dict(layouts or {})
    used: set[str] = set()
    members = [*module.named_parameters(), *module.named_buffers()]
    for path, tensor in members:
        pattern = next((p for p in rules if fnmatch.fnmatchcase(path, p)), None)
        if pattern is not None:
            used.add(pattern)
        sbp = rules[pattern] if pattern is not None else ["B"] * len(placement.shape)
        lay_out(tensor, placement.layout(sbp), path)
    unused = [p for p in rules if p not in used]
    if unused:
        paths = ", ".join(path for path, _ in members[:5])
        raise NotFoundError(f"to_global: {unused} match no parameter of {module.full_name}; its paths are {paths} ...")
    return module


def lay_out(tensor: Tensor, target: Layout, path: str) -> None:
    """Make a tensor that all ranks hold a global one, in place."""
    if tensor._meta.layout is not None:
        raise InvalidArgumentError(
            f"to_global: {path} is {tensor.describe()} already; expected a tensor of one process"
        )
    if target.is_partial:
        raise InvalidArgumentError(f"to_global: {path} in {target!r}; expected splits and broadcasts for parameters")
    target.placement.world.adopt(tensor)
    shape = tensor.shape
    region = target.part(shape)
    part = tensor._value[region].copy()
    tensor._value, tensor._logical_shape, tensor._grad = part, shape, None
    tensor._meta = target.meta(tensor._meta)


def settled(tensor: Tensor) -> Any:
    """The gradient of a parameter, an array or SelectedRows, in the parameter's layout; collective for global ones.

    A gradient of a tensor that is whole on each rank stays in summands until it is read, so that two uses of a
    parameter need one sum.
    """
    gradient = tensor._grad
    assert gradient is not None
    layout, arrived = tensor._meta.layout, gradient._meta.layout
    if layout is None or arrived is None:
        return gradient._value
    return box_part(gradient._value, tensor.shape, arrived, layout)


def clip_grad_norm(parameters: Iterable[Tensor], max_norm: float) -> float:
    """Scale gradients so that the norm of all of them together is at most `max_norm`; collective for global parameters.

    Args:
        parameters: Tensors; those without a gradient are left out.
        max_norm: The largest norm, above 0.

    Returns:
        The norm before.

    Raises:
        InvalidArgumentError: The norm is not above 0.
        PreconditionNotMetError: No parameter has a gradient.
    """
    if not max_norm > 0:
        raise InvalidArgumentError(f"clip_grad_norm: max_norm is {max_norm!r}; expected a number above 0")
    given = list(parameters)
    chosen = [p for p in given if p._grad is not None]
    if given and not chosen:
        raise PreconditionNotMetError(
            f"clip_grad_norm: none of {len(given)} parameters has a gradient; call it between backward() and step(); "
            "under parallel.Zero(optimizer, stage=2) ranks keep parts of gradients: give the optimizer "
            "grad_clip=ClipGradByGlobalNorm(norm)"
        )
    total, local = 0.0, {}
    for p in chosen:
        value = settled(p)
        value = value.to_dense() if isinstance(value, SelectedRows) else value
        local[id(p)] = value
        total += square_of_all(square(value), p._meta.layout)
    norm = math.sqrt(total)
    factor = min(1.0, max_norm / (norm + 1e-6))
    if factor < 1.0:
        for p in chosen:
            assert p._grad is not None
            value = local[id(p)] * np.asarray(factor, local[id(p)].dtype)
            p._grad = p._grad.detach()
            p._grad._value = value
            if p._meta.layout is not None:
                p._grad._meta = p._meta.layout.meta(p._meta.local.without_grad)
                p._grad._logical_shape = p.shape
    return norm


def square(value: Any) -> float:
    """The sum of the squares of an array's elements; of half floats in single precision."""
    flat = value.reshape(-1)
    if flat.dtype.itemsize < 4:
        flat = flat.astype(np.float32)
    return float(np.vdot(flat, flat).real) if flat.size else 0.0


def square_of_all(part: float, layout: Layout | None) -> float:
    """The sum over the ranks that have parts of a tensor, of which `part` is this one's; copies count once."""
    if layout is None:
        return part
    for axis, s in enumerate(layout.sbps):
        if s.kind == "S":
            part = float(layout.placement.group(axis).all_reduce(np.array([part]))[0])
    return part
