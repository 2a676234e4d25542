"""Global tensors: a Tensor whose meta has a layout; this rank holds its part."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from oprack.autograd.custom_rule import CustomRule, attach
from oprack.errors import CollectiveError, InvalidArgumentError, UnimplementedError
from oprack.interpreter.modes import is_grad_enabled
from oprack.op.sbp import Sbp
from oprack.parallel.boxing import box
from oprack.parallel.layout import TENSOR_FUNCTIONS, Layout, Placement
from oprack.parallel.sparse_rows import box_rows
from oprack.tensor import LoDTensor, SelectedRows
from oprack.tensor.eager_tensor import Tensor, new_tensor
from oprack.tensor.meta import TensorMeta, meta_of_value, tensor_meta


def global_tensor(part: Any, meta: TensorMeta, shape: Sequence[int], node: Any = None) -> Tensor:
    """Wrap this rank's part.

    Args:
        part: The part, an array or SelectedRows.
        meta: The meta with the layout.
        shape: The logical shape.
        node: Its place in the autograd graph.

    Returns:
        The tensor.
    """
    tensor = Tensor()
    tensor._value, tensor._meta, tensor._node = part, meta, node
    tensor._logical_shape = tuple(shape)
    return tensor


def boxed(x: Tensor, target: Layout) -> Tensor:
    """A global tensor in another layout, outside of any graph; collective."""
    source = x._meta.layout
    assert source is not None
    if source is target:
        return x
    part = box_part(x._value, x.shape, source, target)
    return global_tensor(part, target.meta(meta_of_value(part, x._meta.place)), x.shape)


def box_part(part: Any, shape: Sequence[int], source: Layout, target: Layout) -> Any:
    """`box`, for SelectedRows as well."""
    if isinstance(part, SelectedRows):
        return box_rows(part, shape, source, target)
    return box(part, shape, source, target)


def dual(source: Layout, arrived: Layout) -> Layout:
    """The layout that the gradient of a tensor has.

    It is split like the tensor and whole where that is a partial sum. Where the tensor is whole, it is as it arrives:
    whole, or in summands that are added when somebody needs the sum.
    """
    sbps = []
    for s, a in zip(source.sbps, arrived.sbps, strict=True):
        if s.kind == "S":
            sbps.append(s)
        elif s.kind == "P":
            sbps.append(Sbp("B"))
        else:
            sbps.append(a if a.kind == "P" else Sbp("B"))
    return source.placement.layout(sbps)


def to_global(x: Tensor, placement: Placement | None = None, sbp: Any = None, *, from_whole: bool = False) -> Tensor:
    """Make a tensor of this process a global one, or give a global one another layout; see Tensor.to_global."""
    layout = x._meta.layout
    if layout is not None:
        if placement is not None and placement is not layout.placement:
            raise UnimplementedError(
                f"to_global: {x.describe()} lies on {layout.placement!r}; moving it to {placement!r} is not supported: "
                "use one placement object for all tensors"
            )
        if from_whole:
            raise InvalidArgumentError(f"to_global: {x.describe()} is global; from_whole is for tensors of one process")
        return _relaid(x, layout, layout if sbp is None else layout.placement.layout(sbp))
    if placement is not None:
        placement.world.adopt(x)
    target = _target(x, placement, sbp)
    placement = target.placement
    if from_whole:
        shape: tuple[int, ...] = x.shape
        region = target.part(shape)
        zeroed = any(s.kind == "P" and c for s, c in zip(target.sbps, placement.coords, strict=True))
        part = np.zeros_like(x._value[region]) if zeroed else x._value[region].copy()
    else:
        shape, part = _logical_shape(x, target), x._value
    meta = target.meta(tensor_meta(LoDTensor, part.dtype, x._meta.place, x._meta.lod_level))
    found = global_tensor(part, meta, shape)
    if x._meta.lod_level:
        found._lod = x._lod
    if x._meta.grad and is_grad_enabled():

        def back(_: Any, gradients: Sequence[Any]) -> list[Tensor]:
            if from_whole:
                whole = boxed(gradients[0], placement.layout(["B"] * len(placement.shape)))
                return [new_tensor(whole._value, whole._meta.local)]
            g = boxed(gradients[0], dual(target, gradients[0]._meta.layout))
            return [new_tensor(g._value, g._meta.local)]

        attach(CustomRule("to_global", 1, back), [x], [found], None)
    return found


def _target(x: Tensor, placement: Placement | None, sbp: Any) -> Layout:
    """The layout that is asked for, after checks that a tensor of this process can have it."""
    if placement is None or sbp is None:
        raise InvalidArgumentError(
            f"to_global: {x.describe()} is of this process alone; expected where it goes: x.to_global(placement, "
            '"split(0)"), with placement = oprack.parallel.placement()'
        )
    target = placement.layout(sbp)
    if x._meta.container is not LoDTensor or (x._meta.lod_level and not target.is_broadcast):
        raise UnimplementedError(
            f"to_global: {x.describe()} holds {'sequences' if x._meta.lod_level else x._meta.container.__name__}; only "
            "dense tensors without LoD are split; use oprack.parallel.DataParallel, in which each rank has whole "
            "sequences of its own"
        )
    if x._meta.place.kind != placement.kind:
        raise InvalidArgumentError(
            f"to_global: {x.describe()} is at {x._meta.place}, the placement on {placement.kind}; move it by x.to(...)"
        )
    return target


def _relaid(x: Tensor, source: Layout, target: Layout) -> Tensor:
    if source is target:
        return x
    found = boxed(x, target)
    if x._meta.grad and is_grad_enabled():
        attach(
            CustomRule("to_global", 1, lambda _, gs: [boxed(gs[0], dual(source, gs[0]._meta.layout))]),
            [x],
            [found],
            None,
        )
    return found


def to_local(x: Tensor) -> Tensor:
    """This rank's part as a tensor of this process; see Tensor.to_local."""
    layout = x._meta.layout
    if layout is None:
        return x
    local = new_tensor(x._value, x._meta.local.without_grad, x._lod)
    if x._meta.grad and is_grad_enabled():
        shape = x.shape
        sbps = ["B" if s.kind == "P" else s for s in layout.sbps]
        grads = layout.placement.layout(sbps)

        def back(_: Any, gradients: Sequence[Any]) -> list[Tensor]:
            g = gradients[0]
            return [global_tensor(g._value, grads.meta(g._meta), shape)]

        attach(CustomRule("to_local", 1, back), [x], [local], None)
    return local


def ones(x: Tensor) -> Tensor:
    """A tensor of ones with the shape and dtype of a global one, whole on each rank."""
    layout = x._meta.layout
    assert layout is not None
    target = layout.placement.layout(["B"] * len(layout.sbps))
    part = np.ones_like(x._value, shape=x.shape)
    return global_tensor(part, target.meta(x._meta.local.without_grad), x.shape)


def gathered(part: Any, shape: Sequence[int], layout: Layout) -> Any:
    """The whole array of which this rank has a part; collective."""
    return box_part(part, shape, layout, layout.placement.layout(["B"] * len(layout.sbps)))


def whole(x: Tensor) -> Any:
    """The logical value of a global tensor, an array or SelectedRows, the same on each rank; collective."""
    layout = x._meta.layout
    assert layout is not None
    return gathered(x._value, x.shape, layout)


def _logical_shape(x: Tensor, target: Layout) -> tuple[int, ...]:
    """The shape of what the ranks' parts make up. Raises CollectiveError when they don't fit."""
    placement = target.placement
    facts = placement.world.gather_facts([list(x.shape), str(x.dtype)])
    shapes = [tuple(f[0]) for f in facts]
    ranks = [len(s) for s in shapes]
    target.require_dims(x.shape)
    if len(set(ranks)) > 1 or len({f[1] for f in facts}) > 1:
        r = next(k for k, f in enumerate(facts) if (len(f[0]), f[1]) != (len(x.shape), str(x.dtype)))
        raise CollectiveError(
            f"to_global: rank {placement.world.rank} brings {x.describe()}, rank {r} {facts[r][1]}{facts[r][0]}; "
            "expected parts of one tensor"
        )
    logical = list(x.shape)
    for dim in {s.dim for s in target.sbps if s.kind == "S"}:
        axes = [k for k, s in enumerate(target.sbps) if s.dim == dim]
        total = 0
        for rank, shape in enumerate(shapes):
            coords = placement.coords_of(rank)
            if all(coords[k] == 0 for k in range(len(coords)) if k not in axes):
                total += shape[dim]
        logical[dim] = total
    for rank, shape in enumerate(shapes):
        expected = target.local_shape(logical, placement.coords_of(rank))
        if shape != expected:
            raise CollectiveError(
                f"to_global: rank {rank} brings {x.dtype}{list(shape)}; expected {x.dtype}{list(expected)} as its part "
                f"of {logical} in {target!r}, a balanced split"
            )
    return tuple(logical)


TENSOR_FUNCTIONS.update(whole=whole, gathered=gathered, ones=ones)
