"""Where the parts of a global tensor lie: Placement and Layout. Arithmetic only; nothing here moves data."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cached_property
from types import EllipsisType
from typing import TYPE_CHECKING, Any, cast

from oprack.eager_tensor.meta import TensorMeta
from oprack.errors import InvalidArgumentError
from oprack.op.sbp import Sbp, sbp_of
from oprack.tensor import LoDTensor, SelectedRows

if TYPE_CHECKING:
    from oprack.eager_tensor import Tensor
    from oprack.parallel.communicator import Communicator

Region = tuple[tuple[int, int], ...]
"""(start, stop) for each dim."""


def balanced(size: int, parts: int, index: int) -> tuple[int, int]:
    """(start, stop) of part `index` when `size` elements are split as evenly as can be, the larger parts first."""
    small, larger = divmod(size, parts)
    start = index * small + min(index, larger)
    return start, start + small + (index < larger)


TENSOR_FUNCTIONS: dict[str, Callable[..., Any]] = {}
"""Functions of tensors that layouts call, by name. They come from eager.global_tensor, which imports this module."""


class Placement:
    """A grid of ranks on one kind of place, with a name for each axis; `parallel.placement` makes one.

    Args:
        world: The communicator of all ranks.
        kind: Kind of the ranks' places, "cpu" or "cuda".
        shape: Sizes of the grid's axes; their product is the number of ranks.
        axes: A name for each axis.

    Attributes:
        coords: Where this rank lies in the grid.

    Raises:
        InvalidArgumentError: The grid has another number of ranks than the world, or names are missing or twice.
    """

    def __init__(self, world: Communicator, kind: str, shape: Sequence[int], axes: Sequence[str]) -> None:
        self.world, self.kind, self.shape, self.axes = world, kind, tuple(shape), tuple(axes)
        ranks = math.prod(self.shape)
        if ranks != world.size or not self.shape or min(self.shape) < 1:
            raise InvalidArgumentError(
                f"placement {self.shape} holds {ranks} ranks, but {world.size} run; start {ranks} (oprack launch -n "
                f"{ranks} ...) or give another shape"
            )
        if len(self.axes) != len(self.shape) or len(set(self.axes)) != len(self.axes):
            raise InvalidArgumentError(
                f"placement {self.shape}: axes are {list(self.axes)}; expected {len(self.shape)} different names"
            )
        self.coords = self.coords_of(world.rank)
        self._groups: dict[int, Communicator] = {}
        self._layouts: dict[tuple[Sbp, ...], Layout] = {}
        self._parts: dict[str, Placement] = {}
        self._decided = 0

    def coords_of(self, rank: int) -> tuple[int, ...]:
        """Where a rank lies in the grid; the last axis varies fastest."""
        coords = []
        for size in reversed(self.shape):
            rank, at = divmod(rank, size)
            coords.append(at)
        return tuple(reversed(coords))

    def group(self, axis: int) -> Communicator:
        """The communicator of this rank's line along an axis. Its first use is collective."""
        if axis not in self._groups:
            others = [c for k, c in enumerate(self.coords) if k != axis]
            color = 0
            for size, at in zip([s for k, s in enumerate(self.shape) if k != axis], others, strict=True):
                color = color * size + at
            name, size = self.axes[axis], self.shape[axis]
            common = f"axis {axis} of {self!r}"
            self._groups[axis] = (
                self.world if len(self.shape) == 1 else self.world.split(color, self.coords[axis], name, size, common)
            )
        return self._groups[axis]

    def without(self, axis: str) -> Placement:
        """The grid of the ranks that lie where this one lies along an axis: a placement over some of the ranks.

        Tensors on it are those of these ranks alone; other ranks have others, on a grid of the same shape. Its world,
        `placement.without("stage").world`, is what `parallel.world()` has to be where modules are made for it, by
        `use_world` of oprack.parallel.world, as `parallel.Pipeline` does. Its first use is collective.

        Args:
            axis: The name of the axis.

        Returns:
            The placement, the same object each time.

        Raises:
            InvalidArgumentError: There is no such axis.
        """
        if axis not in self.axes:
            raise InvalidArgumentError(f"without({axis!r}) of {self!r}; expected one of {', '.join(self.axes)}")
        found = self._parts.get(axis)
        if found is None:
            k = self.axes.index(axis)
            shape, axes = (*self.shape[:k], *self.shape[k + 1 :]), (*self.axes[:k], *self.axes[k + 1 :])
            at = 0
            for size, c in zip(shape, (*self.coords[:k], *self.coords[k + 1 :]), strict=True):
                at = at * size + c
            number, common = self.coords[k], f"ranks along {axis} of {self!r}"
            world = self.world.split(number, at, f"{axis} {number}", math.prod(shape), common)
            if not shape:
                shape, axes = (1,), ("alone",)
            world.links, world.place_kind, world.grid = self.world.links, self.world.place_kind, (shape, axes)
            found = self._parts[axis] = Placement(world, self.kind, shape, axes)
            # what parallel.placement() gives inside of that world
            world.__dict__.setdefault("placements", {})[self.kind, shape, axes] = found
        return found

    def layout(self, sbps: Any) -> Layout:
        """The layout with these Sbps, one for each axis; always the same object.

        Args:
            sbps: An Sbp or its text, or a sequence of them, outermost axis first.

        Returns:
            The layout.

        Raises:
            InvalidArgumentError: There is not one for each axis.
        """
        given = [sbps] if isinstance(sbps, Sbp | str) else list(sbps)
        key = tuple([sbp_of(s) for s in given])
        if len(key) != len(self.shape):
            raise InvalidArgumentError(
                f"sbp {list(key)} for {self!r}; expected one for each of its {len(self.shape)} axes "
                f"({', '.join(self.axes)})"
            )
        return self._layouts.setdefault(key, Layout(self, key))

    def to_global(self, x: Tensor, sbp: Any, from_whole: bool) -> Tensor:
        """A tensor in a layout on this placement; see Tensor.to_global. Collective."""
        tensor: Tensor = TENSOR_FUNCTIONS["to_global"](x, self, sbp, from_whole=from_whole)
        return tensor

    def agree(self, what: str, decision: Any) -> None:
        """Raise CollectiveError unless all ranks decide the same; collective."""
        self._decided += 1
        self.world.agree((what, self.shape, self.axes, self._decided), decision, what)

    def __repr__(self) -> str:
        sides = " x ".join(f"{axis}={size}" for axis, size in zip(self.axes, self.shape, strict=True))
        return f"placement({self.kind}, {sides})"


class Layout:
    """A placement and an Sbp for each of its axes; `Placement.layout` makes them, one object for all equal ones.

    Args:
        placement: The ranks.
        sbps: How a tensor lies along each axis of the placement.
    """

    def __init__(self, placement: Placement, sbps: tuple[Sbp, ...]) -> None:
        self.placement, self.sbps = placement, sbps
        self._metas: dict[TensorMeta, TensorMeta] = {}
        self.even = self  # the same Sbps with parts as equal as can be; another object only for `by_rows`

    def __repr__(self) -> str:
        return f"[{', '.join(map(repr, self.sbps))}] on {self.placement!r}"

    @cached_property
    def by_rows(self) -> Layout:
        """The layout with the same Sbps for tensors whose rows are split by whole sequences, and so unevenly.

        Which rows a rank has is known to the tensor alone (`oprack.parallel.eager.sequences.Rows`). `even` of the
        result is this layout again.
        """
        layout = Layout(self.placement, self.sbps)
        layout.even = self
        return layout

    @cached_property
    def is_broadcast(self) -> bool:
        """Whether every rank has the whole."""
        return all(s.kind == "B" for s in self.sbps)

    @cached_property
    def is_partial(self) -> bool:
        """Whether the whole is a sum over ranks of some axis."""
        return any(s.kind == "P" for s in self.sbps)

    def require_dims(self, shape: Sequence[int]) -> None:
        """Raise InvalidArgumentError if a split dim does not exist in this shape."""
        for s in self.sbps:
            if s.dim >= len(shape):
                raise InvalidArgumentError(
                    f"{s} splits dim {s.dim} of a tensor of shape {list(shape)}, which has {len(shape)} dims"
                )

    def region(self, shape: Sequence[int], coords: Sequence[int] | None = None) -> Region:
        """(start, stop) of each dim of the part that a rank has.

        Args:
            shape: The logical shape.
            coords: Where the rank lies in the grid; default: this rank.

        Returns:
            A pair for each dim.

        Raises:
            InvalidArgumentError: A split dim does not exist.
        """
        self.require_dims(shape)
        region = [(0, n) for n in shape]
        grid = self.placement.shape
        for s, size, at in zip(self.sbps, grid, coords or self.placement.coords, strict=True):
            if s.kind == "S":
                start, stop = region[s.dim]
                a, b = balanced(stop - start, size, at)
                region[s.dim] = (start + a, start + b)
        return tuple(region)

    def part(self, shape: Sequence[int]) -> tuple[slice | EllipsisType, ...]:
        """The index of this rank's part in an array of the logical shape."""
        # With the ellipsis the part of a 0-D array is an array, not a number.
        return (*(slice(start, stop) for start, stop in self.region(shape)), ...)

    def local_shape(self, shape: Sequence[int], coords: Sequence[int] | None = None) -> tuple[int, ...]:
        """The shape of the part that a rank has, by default this one."""
        return tuple([stop - start for start, stop in self.region(shape, coords)])

    def largest_part(self, shape: Sequence[int]) -> tuple[int, ...]:
        """The shape of the first rank's part, which is at least as large as any other.

        Decisions that have to be the same on all ranks go by it, since parts differ where sizes do not divide.
        """
        return self.local_shape(shape, (0,) * len(self.sbps))

    def replaced(self, axis: int, sbp: Sbp) -> Layout:
        """This layout with another Sbp along one axis."""
        return self.placement.layout((*self.sbps[:axis], sbp, *self.sbps[axis + 1 :]))

    # What eager tensors call on their layout, whose class they do not know --------------------------------------------
    def whole_value(self, x: Tensor) -> Any:
        """The value of a global tensor as a scope holds values, the same on each rank; collective."""
        value = TENSOR_FUNCTIONS["whole"](x)
        if isinstance(value, SelectedRows):
            return value
        return LoDTensor(value, x._lod if x._rows is None else x.lod, place=x._meta.place, check=False)

    def gathered(self, part: Any, shape: Sequence[int]) -> Any:
        """The whole array of which each rank has a part in this layout; collective."""
        return TENSOR_FUNCTIONS["gathered"](part, shape, self)

    def ones(self, x: Tensor) -> Tensor:
        """A tensor of ones with the shape and dtype of a global one, whole on each rank."""
        ones: Tensor = TENSOR_FUNCTIONS["ones"](x)
        return ones

    def to_local(self, x: Tensor) -> Tensor:
        """This rank's part of a global tensor, as a tensor of this process; see Tensor.to_local."""
        local: Tensor = TENSOR_FUNCTIONS["to_local"](x)
        return local

    def meta(self, local: TensorMeta) -> TensorMeta:
        """The meta of global tensors with this layout whose parts have meta `local`; always the same object."""
        meta = self._metas.get(local)
        if meta is None:
            meta = self._metas[local] = local.placed(self)
            meta.with_grad = meta if local.with_grad is local else self.meta(local.with_grad)
            meta.without_grad = meta if local.without_grad is local else self.meta(local.without_grad)
            meta.with_tracking = meta if local.with_tracking is local else self.meta(local.with_tracking)
        return meta


def layout_of(meta: TensorMeta) -> Layout | None:
    """The layout of tensors with a meta; None for tensors of one process alone.

    Eager tensors know the layout by the few methods that they call, hence the cast.
    """
    layout: Layout | None = cast(Any, meta.layout)
    return layout


def output_grad_layout(layout: Layout) -> Layout:
    """The layout in which the gradient of an output is needed: each summand of a partial sum needs the whole of it."""
    return layout.placement.layout([Sbp("B") if s.kind == "P" else s for s in layout.sbps])


def input_grad_layout(layout: Layout, splits: Sequence[bool]) -> Layout:
    """The layout in which a call on parts computes the gradient of an input.

    Args:
        layout: The layout in which the call read the input.
        splits: For each axis, whether ranks computed different things. If so, each has one summand of the gradient of
            an input that was whole.

    Returns:
        The layout.
    """
    pairs = zip(layout.sbps, splits, strict=True)
    return layout.placement.layout(
        [s if s.kind == "S" else Sbp("P") if s.kind == "B" and split else Sbp("B") for s, split in pairs]
    )


def grad_layout(source: Layout, arrived: Layout) -> Layout:
    """The layout that the gradient of a tensor is brought into.

    Along an axis that splits the tensor the gradient is split alike; where the tensor is a partial sum, it is whole.
    Where the tensor is whole, the gradient stays a partial sum if it arrives as one, and is added up on first use.

    Args:
        source: The layout of the tensor.
        arrived: The layout in which the gradient arrives.

    Returns:
        The layout.
    """
    if source.placement is not arrived.placement:
        return source.placement.layout(["B" if s.kind == "P" else s for s in source.sbps])
    sbps = []
    for s, a in zip(source.sbps, arrived.sbps, strict=True):
        if s.kind == "S":
            sbps.append(s)
        elif s.kind == "P":
            sbps.append(Sbp("B"))
        else:
            sbps.append(a if a.kind == "P" else Sbp("B"))
    return source.placement.layout(sbps)
