"""Global tensors: a Tensor whose meta has a layout; this rank holds its part."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from typing import Any

import numpy as np
from oprack.autograd.custom_rule import CustomRule, attach
from oprack.eager_tensor import Tensor, new_tensor
from oprack.eager_tensor.meta import TensorMeta, meta_of_value, tensor_meta
from oprack.errors import CollectiveError, InvalidArgumentError, UnimplementedError
from oprack.interpreter.modes import is_grad_enabled
from oprack.parallel.communicator import EVERY
from oprack.parallel.eager.sequences import Rows, box_rows_of, gathered_rows, rows_in, split_axis, whole_lod
from oprack.parallel.layouts.boxing import box
from oprack.parallel.layouts.layout import TENSOR_FUNCTIONS, Layout, Placement, grad_layout, layout_of
from oprack.parallel.layouts.moving import moved
from oprack.parallel.sparse_rows import box_rows
from oprack.tensor import LoDTensor, SelectedRows

_BROUGHT = 32
"""Of so many tensors that ranks bring, values are compared; later of every 50th."""
_OWN = Rows(())
_SAME = (
    "expected the same array on each: draw it with one seed on all ranks (oprack.seed), or take that of rank 0 by "
    "parallel.world().broadcast(array)"
)


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
    source = layout_of(x._meta)
    assert source is not None
    if source is target:
        return x
    if source.even is not source or x._meta.lod_level:
        return boxed_rows(x, target, rows_in(x, target))
    part = box_part(x._value, x.shape, source, target)
    return global_tensor(part, target.meta(meta_of_value(part, x._meta.place)), x.shape)


def boxed_rows(x: Tensor, target: Layout, rows: Rows | None) -> Tensor:
    """A global tensor in another layout, whose rows lie there as said, or evenly; collective.

    Args:
        x: The tensor.
        target: The layout.
        rows: How the rows lie in `target`; None: evenly, or whole.

    Returns:
        The tensor in that layout.
    """
    source, lod = layout_of(x._meta), whole_lod(x)
    assert source is not None
    target = target.even
    part = box_rows_of(x._value, x.shape, source, target, x._rows, rows)
    axis = None if rows is None else split_axis(target)
    if axis is None or rows is None:
        found = global_tensor(part, target.meta(meta_of_value(part, x._meta.place, len(lod))), x.shape)
        found._lod = [list(level) for level in lod]
        return found
    found = global_tensor(part, target.by_rows.meta(meta_of_value(part, x._meta.place, len(rows.lod))), x.shape)
    found._rows, found._lod = rows, rows.part(target.placement.coords[axis])
    return found


def box_part(part: Any, shape: Sequence[int], source: Layout, target: Layout) -> Any:
    """`box`, for SelectedRows as well."""
    if isinstance(part, SelectedRows):
        return box_rows(part, shape, source, target)
    if source.placement is not target.placement:
        return moved(part, shape, source, target)
    return box(part, shape, source, target)


def to_global(x: Tensor, placement: Placement | None = None, sbp: Any = None, *, from_whole: bool = False) -> Tensor:
    """Make a tensor of this process a global one, or give a global one another layout; see Tensor.to_global."""
    layout = layout_of(x._meta)
    if layout is not None:
        if from_whole:
            raise InvalidArgumentError(f"to_global: {x.describe()} is global; from_whole is for tensors of one process")
        placement = placement or layout.placement
        if sbp is None and placement is not layout.placement:
            raise InvalidArgumentError(
                f"to_global: {x.describe()} goes to {placement!r}; expected how it lies there: x.to_global(placement, "
                '"split(0)")'
            )
        if placement is not layout.placement and (layout.even is not layout or x._meta.lod_level):
            raise UnimplementedError(
                f"to_global: {x.describe()} is split by sequences; only dense tensors in even parts go to another "
                'placement: make it whole by x.to_global(sbp="broadcast") of x without LoD'
            )
        return relaid(x, layout if sbp is None else placement.layout(sbp))
    if placement is not None:
        placement.world.adopt(x)
    target = _target(x, placement, sbp)
    shape, part, rows = _brought(x, target, from_whole)
    lod = x._lod if rows is None else rows.part(_rank_along_rows(target))
    return placed(x, part, target, shape, rows, lod, from_whole)


def placed(
    x: Tensor,
    part: Any,
    layout: Layout,
    shape: Sequence[int],
    rows: Rows | None = None,
    lod: Any = (),
    from_whole: bool = False,
) -> Tensor:
    """The global tensor of which a tensor of this process is, or has, this rank's part; gradients flow back to it.

    Args:
        x: The tensor of this process.
        part: This rank's part, an array.
        layout: The layout.
        shape: The logical shape.
        rows: How rows lie that are split by sequences.
        lod: The part's offsets.
        from_whole: Whether each rank has the whole, whose gradient is whole as well.

    Returns:
        The global tensor.
    """
    lies = layout if rows is None else layout.by_rows
    level = len(lod) if x._meta.lod_level else 0
    found = global_tensor(part, lies.meta(tensor_meta(LoDTensor, part.dtype, x._meta.place, level)), shape)
    found._rows = rows
    if level:
        found._lod = lod
    if x._meta.grad and is_grad_enabled():

        def back(_: Any, gradients: Sequence[Any]) -> list[Tensor]:
            wanted = everywhere(layout) if from_whole else grad_layout(layout, gradients[0]._meta.layout)
            return [to_local(relaid(gradients[0], wanted, None if from_whole else _cuts(rows)))]

        attach(CustomRule("to_global", 1, back, again=True), [x], [found], None)
    return found


def everywhere(layout: Layout) -> Layout:
    """The layout on the same placement in which each rank has the whole."""
    return layout.placement.layout(["B"] * len(layout.sbps))


def _brought(x: Tensor, target: Layout, from_whole: bool) -> tuple[tuple[int, ...], Any, Rows | None]:
    """(logical shape, this rank's part, how rows lie that are split by sequences) of what a rank brings."""
    rows = None
    if x._meta.lod_level and split_axis(target) is not None:
        rows = rows_in(x, target) if from_whole else gathered_rows(x, target)
    if rows is not None and from_whole:
        return x.shape, box_rows_of(x._value, x.shape, everywhere(target), target, None, rows).copy(), rows
    if rows is not None:
        return (rows.cuts[-1], *x.shape[1:]), x._value, rows
    if not from_whole:
        return _logical_shape(x, target), x._value, None
    _require_same_wholes(x, target.placement)
    region = target.part(x.shape)
    zeroed = any(s.kind == "P" and c for s, c in zip(target.sbps, target.placement.coords, strict=True))
    return x.shape, np.zeros_like(x._value[region]) if zeroed else x._value[region].copy(), None


def _target(x: Tensor, placement: Placement | None, sbp: Any) -> Layout:
    """The layout that is asked for, after checks that a tensor of this process can have it."""
    if placement is None or sbp is None:
        raise InvalidArgumentError(
            f"to_global: {x.describe()} is of this process alone; expected where it goes: x.to_global(placement, "
            '"split(0)"), with placement = parallel.placement() after "from oprack import parallel"'
        )
    target = placement.layout(sbp)
    if x._meta.container is not LoDTensor:
        raise UnimplementedError(
            f"to_global: {x.describe()} holds {x._meta.container.__name__}; expected a dense tensor, or one with LoD"
        )
    if x._meta.place.kind != placement.kind:
        raise InvalidArgumentError(
            f"to_global: {x.describe()} is at {x._meta.place}, the placement on {placement.kind}; move it by x.to(...)"
        )
    return target


def _rank_along_rows(layout: Layout) -> int:
    axis = split_axis(layout)
    assert axis is not None
    return layout.placement.coords[axis]


def relaid(x: Tensor, target: Layout, rows: Rows | None = _OWN) -> Tensor:
    """A global tensor in another layout; gradients flow through. Collective.

    Args:
        x: The tensor.
        target: The layout.
        rows: How its rows lie there, None for evenly; default: by the tensor's sequences.

    Returns:
        The tensor in that layout.
    """
    source, own, after = layout_of(x._meta), rows is _OWN, rows
    assert source is not None
    if own:
        after = rows_in(x, target) if source.placement is target.placement else None
    if source.even is target and (own or _cuts(x._rows) == _cuts(after)):
        return x
    dense = source.even is source and not x._meta.lod_level and after is None
    found = boxed(x, target) if dense else boxed_rows(x, target, after)
    if x._meta.grad and is_grad_enabled():
        before = _cuts(x._rows)

        def back(_: Any, gradients: Sequence[Any]) -> list[Tensor]:
            return [relaid(gradients[0], grad_layout(source, gradients[0]._meta.layout), before)]

        attach(CustomRule("to_global", 1, back, again=True), [x], [found], None)
    return found


def _cuts(rows: Rows | None) -> Rows | None:
    """How rows lie, without offsets: a gradient has none."""
    return None if rows is None else Rows(rows.cuts)


def to_local(x: Tensor) -> Tensor:
    """This rank's part as a tensor of this process; see Tensor.to_local."""
    layout = layout_of(x._meta)
    if layout is None:
        return x
    local = new_tensor(x._value, x._meta.local.without_grad, x._lod)
    if x._meta.grad and is_grad_enabled():
        shape, rows = x.shape, _cuts(x._rows)
        grads = layout.placement.layout(["B" if s.kind == "P" else s for s in layout.sbps])

        def back(_: Any, gradients: Sequence[Any]) -> list[Tensor]:
            return [placed(gradients[0], gradients[0]._value, grads, shape, rows)]

        attach(CustomRule("to_local", 1, back, again=True), [x], [local], None)
    return local


def ones(x: Tensor) -> Tensor:
    """A tensor of ones with the shape and dtype of a global one, whole on each rank."""
    layout = layout_of(x._meta)
    assert layout is not None
    target = layout.placement.layout(["B"] * len(layout.sbps))
    part = np.ones_like(x._value, shape=x.shape)
    return global_tensor(part, target.meta(x._meta.local.without_grad), x.shape)


def gathered(part: Any, shape: Sequence[int], layout: Layout) -> Any:
    """The whole array of which this rank has a part; collective."""
    return box_part(part, shape, layout, layout.placement.layout(["B"] * len(layout.sbps)))


def whole(x: Tensor) -> Any:
    """The logical value of a global tensor, an array or SelectedRows, the same on each rank; collective."""
    layout = layout_of(x._meta)
    assert layout is not None
    if layout.even is not layout:
        return boxed_rows(x, layout.placement.layout(["B"] * len(layout.sbps)), None)._value
    return gathered(x._value, x.shape, layout)


def _logical_shape(x: Tensor, target: Layout) -> tuple[int, ...]:
    """The shape of what the ranks' parts make up. Raises CollectiveError when they don't fit."""
    placement = target.placement
    copies = any(s.kind == "B" for s in target.sbps)
    facts = placement.world.gather_facts([list(x.shape), str(x.dtype), _checksum(x, placement) if copies else None])
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
    _require_same_copies(x, target, [f[2] for f in facts])
    return tuple(logical)


def _checksum(x: Tensor, placement: Placement) -> int | None:
    """A checksum of what a rank brings, of the first tensors and of some later ones; None of the others."""
    world = placement.world
    if not world.compares:
        return None
    number = world.__dict__["brought"] = world.__dict__.get("brought", 0) + 1
    if number > _BROUGHT and number % EVERY:
        return None
    value = x._value.get() if hasattr(x._value, "get") else x._value  # of a device
    return zlib.crc32(np.ascontiguousarray(value).tobytes())


def _require_same_wholes(x: Tensor, placement: Placement) -> None:
    """Raise CollectiveError where ranks bring different arrays, each of which is said to be the whole."""
    own = _checksum(x, placement)
    if own is None:
        return
    facts = placement.world.gather_facts([x.describe(), own])
    if any(f != facts[0] for f in facts):
        r = next(k for k, f in enumerate(facts) if f != facts[0])
        raise CollectiveError(
            f"to_global(from_whole=True): ranks 0 and {r} bring {facts[0][0]} and {facts[r][0]} of different values; "
            f"{_SAME}, or leave from_whole out where each rank brings its own part"
        )


def _require_same_copies(x: Tensor, target: Layout, checksums: Sequence[int | None]) -> None:
    """Raise CollectiveError where ranks that share an axis of broadcast bring different arrays."""
    first: dict[tuple[int, ...], int] = {}
    for rank, found in enumerate(checksums):
        coords = target.placement.coords_of(rank)
        part = tuple(0 if s.kind == "B" else at for s, at in zip(target.sbps, coords, strict=True))
        other = first.setdefault(part, rank)
        if checksums[other] != found:
            raise CollectiveError(
                f"to_global: ranks {other} and {rank} bring {x.describe()} of different values, which {target!r} takes "
                f"for copies; {_SAME}"
            )


TENSOR_FUNCTIONS.update(whole=whole, gathered=gathered, ones=ones, to_global=to_global, to_local=to_local)
