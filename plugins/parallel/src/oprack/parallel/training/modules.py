"""Modules on several ranks: parameters laid out over a placement, and gradients clipped by the norm of all."""

from __future__ import annotations

import fnmatch
import math
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from oprack.eager_tensor import Tensor
from oprack.eager_tensor.devices import context
from oprack.eager_tensor.meta import meta_of_value
from oprack.errors import InvalidArgumentError, NotFoundError, PreconditionNotMetError
from oprack.nn.update_program import square
from oprack.nn.updates import register_global_gradients
from oprack.parallel.eager.global_tensor import box_part, global_tensor
from oprack.parallel.layouts.boxing import route
from oprack.parallel.layouts.layout import Layout, Placement, layout_of
from oprack.parallel.training.buckets import bucket_bytes, buckets
from oprack.parallel.training.data_parallel import copy_from_first
from oprack.tensor import SelectedRows

if TYPE_CHECKING:
    from oprack.nn.module import Module

M = TypeVar("M", bound="Module")


def to_global(module: M, placement: Placement, layouts: Mapping[str, Any] | None = None) -> M:
    """Lay a module's parameters and buffers out over a placement, in place. They become those of rank 0.

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
        CollectiveError: The modules of the ranks differ in names, shapes or dtypes.
    """
    rules = dict(layouts or {})
    used: set[str] = set()
    members = [*module.named_parameters(), *module.named_buffers()]
    for _, tensor in members:
        placement.world.adopt(tensor)
    # Ranks that were seeded each by itself would have other values in parameters that are "whole on each".
    copy_from_first("to_global", [(p, t) for p, t in members if t._meta.layout is None], placement.world)
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
    layout, arrived = layout_of(tensor._meta), layout_of(gradient._meta)
    if layout is None or arrived is None:
        return gradient._value
    return box_part(gradient._value, tensor.shape, arrived, layout)


def settle(parameters: Iterable[Tensor], bucket_mb: float = 4.0) -> None:
    """Add up the gradients of global parameters that ranks have in summands, in messages of many; collective.

    Args:
        parameters: Tensors, in the same order on every rank. What is no sum alone is left to `settled`.
        bucket_mb: The size of a message in MiB.
    """
    summed: dict[tuple[Placement, tuple[int, ...]], list[Tensor]] = {}
    for p in parameters:
        layout, gradient = layout_of(p._meta), p._grad
        arrived = None if gradient is None else layout_of(gradient._meta)
        if layout is None or gradient is None or arrived is None or arrived.placement is not layout.placement:
            continue
        steps = route(arrived.even, layout)
        sums = all(s.source.kind == "P" and s.target.kind == "B" for s in steps)
        if steps and sums and not gradient.is_sparse and gradient.dtype == p.dtype:
            summed.setdefault((layout.placement, tuple([s.axis for s in steps])), []).append(p)
    for (placement, axes), members in summed.items():
        for bucket in buckets(members, bucket_bytes(bucket_mb, "settle")):
            with context(bucket.tensors[0].place).activate():
                flat = bucket.joined([p._grad._value for p in bucket.tensors if p._grad is not None])
                for axis in axes:
                    flat = placement.group(axis).all_reduce(flat, in_place=True)
            for p, value in zip(bucket.tensors, bucket.views(flat), strict=True):
                assert p._meta.layout is not None
                p._grad = global_tensor(value, p._meta.layout.meta(meta_of_value(value, p.place)), p.shape)


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
    return clip_by(parameters, max_norm, lambda _, squares: float(squares.sum()))


def clip_by(
    parameters: Iterable[Tensor], max_norm: float, total: Callable[[Sequence[Tensor], np.ndarray], float]
) -> float:
    """As `clip_grad_norm`, for ranks that have gradients of other parameters as well.

    Args:
        parameters: Tensors.
        max_norm: The largest norm.
        total: The sum of squares of all gradients, of the parameters that have one and the squares of each.

    Returns:
        The norm before.
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
    settle(chosen)
    local = {}
    for p in chosen:
        value = settled(p)
        local[id(p)] = value.to_dense() if isinstance(value, SelectedRows) else value
    parts = np.array([square(local[id(p)]) for p in chosen])
    norm = math.sqrt(total(chosen, squares_of_all(parts, [layout_of(p._meta) for p in chosen])))
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


def squares_of_all(parts: np.ndarray, layouts: Sequence[Layout | None]) -> np.ndarray:
    """For each tensor, the sum over the ranks that have parts of it, of which this one's is given; collective.

    Args:
        parts: Of this rank; copies count once.
        layouts: Of the tensors.

    Returns:
        The sums.
    """
    found = parts.copy()
    lines: dict[tuple[Placement, int], list[int]] = {}
    for k, layout in enumerate(layouts):
        for axis, s in enumerate(() if layout is None else layout.sbps):
            if layout is not None and s.kind == "S":
                lines.setdefault((layout.placement, axis), []).append(k)
    # The axes of a grid in one order on all ranks; a sum over two of them goes over one after the other.
    for (placement, axis), chosen in lines.items():
        found[chosen] = placement.group(axis).all_reduce(found[chosen])
    return found


register_global_gradients(sys.modules[__name__])
