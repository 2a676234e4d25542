"""Boxing: from one layout of a tensor to another, axis by axis, with at most one collective for each step."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from oprack.errors import InvalidArgumentError
from oprack.op.sbp import Sbp, broadcast
from oprack.parallel.layouts.layout import Layout, Placement, balanced

_COLLECTIVES = {"SS": "all_to_all", "SB": "all_gather", "PS": "reduce_scatter", "PB": "all_reduce"}
"""What a step sends; the other steps send nothing."""


@dataclass(frozen=True)
class Step:
    """One change along one axis of a placement."""

    axis: int
    source: Sbp
    target: Sbp
    before: Layout

    @property
    def after(self) -> Layout:
        """The layout that the step makes."""
        return self.before.replaced(self.axis, self.target)


@lru_cache(maxsize=4096)
def route(source: Layout, target: Layout) -> tuple[Step, ...]:
    """The steps from one layout to another of the same placement.

    Where a dim is split along two axes, the inner axis splits the outer one's part. So an outer axis takes or leaves a
    dim only while no inner axis splits it: such an inner axis is made whole first, and split again after.

    Args:
        source: What is there.
        target: What is wanted.

    Returns:
        Steps in order; none when the layouts are the same.

    Raises:
        InvalidArgumentError: The layouts have different placements.
    """
    if source.placement is not target.placement:
        raise InvalidArgumentError(
            f"a tensor on {source.placement!r} is wanted on {target.placement!r}; expected the same placement object: "
            "make it once with oprack.parallel.placement(...) and use it for all tensors"
        )
    steps: list[Step] = []
    now = source
    while now is not target:
        step = _next_step(now, target)
        steps.append(step)
        now = step.after
    return tuple(steps)


def _next_step(now: Layout, target: Layout) -> Step:
    axes = range(len(now.sbps))
    legal = [
        Step(k, now.sbps[k], target.sbps[k], now)
        for k in axes
        if now.sbps[k] != target.sbps[k] and _blocking(now, k, target.sbps[k]) is None and not _early(now, k, target)
    ]
    if legal:
        # What costs no message comes first, since splitting makes later messages smaller.
        return min(legal, key=lambda s: (_order(s), -s.axis))
    # The innermost axis that blocks another is made whole.
    blocked = [k for k in axes if now.sbps[k] != target.sbps[k]]
    inner = max(
        [b for k in blocked if (b := _blocking(now, k, target.sbps[k])) is not None]
        # Two axes that swap their dims wait for each other; the inner one gives its up.
        or [k for k in blocked if now.sbps[k].kind == "S"]
    )
    return Step(inner, now.sbps[inner], broadcast, now)


def _blocking(now: Layout, axis: int, to: Sbp) -> int | None:
    """The innermost axis inside `axis` that splits a dim which this change gives up or takes."""
    dims = {s.dim for s in (now.sbps[axis], to) if s.kind == "S"}
    inner = [j for j in range(axis + 1, len(now.sbps)) if now.sbps[j].kind == "S" and now.sbps[j].dim in dims]
    return inner[-1] if inner else None


def _early(now: Layout, axis: int, target: Layout) -> bool:
    """Whether an outer axis has yet to give up or take the dim that this axis is going to split."""
    dim = target.sbps[axis].dim
    outer = ((now.sbps[j], target.sbps[j]) for j in range(axis) if now.sbps[j] != target.sbps[j])
    return dim >= 0 and any(s.dim == dim for pair in outer for s in pair)


def _order(step: Step) -> int:
    kinds = step.source.kind + step.target.kind
    return {"BS": 0, "PS": 1, "SS": 2, "PB": 3, "SB": 4, "BP": 5, "SP": 6}[kinds]


def cost(source: Layout, target: Layout, shape: Sequence[int], itemsize: int) -> float:
    """Seconds that boxing takes, by latency and bandwidth; 0.0 where no message is sent."""
    return sum(step_cost(step, shape, itemsize) for step in route(source, target))


def step_cost(step: Step, shape: Sequence[int], itemsize: int) -> float:
    """Seconds that a step takes, by the link of its axis; the same on every rank, which all have to choose alike."""
    placement = step.before.placement
    collective = _COLLECTIVES.get(step.source.kind + step.target.kind)
    if collective is None:
        return 0.0
    whole = math.prod(step.before.replaced(step.axis, broadcast).largest_part(shape)) * itemsize
    link = placement.world.links.of(placement.axes[step.axis])
    return link.seconds(collective, whole, placement.shape[step.axis])


def box(x: Any, shape: Sequence[int], source: Layout, target: Layout) -> Any:
    """This rank's part in another layout; collective.

    Args:
        x: This rank's part in `source`.
        shape: The logical shape.
        source: The layout that `x` has.
        target: The layout that is wanted.

    Returns:
        The part in `target`: `x` itself when the layouts are the same, or a view where a part of it is wanted.

    Raises:
        InvalidArgumentError: The layouts have different placements, or split a dim that the shape does not have.
        CollectiveError: The ranks call different collectives.
    """
    if source is target:
        return x
    target.require_dims(shape)
    for step in route(source, target):
        x = _STEPS[step.source.kind + step.target.kind](x, shape, step)
    return x


# The transitions. In each, x is this rank's part before the step, and `whole` the shape of the part that the ranks of
# the axis share among them.
def _whole(shape: Sequence[int], step: Step) -> tuple[int, ...]:
    return step.before.replaced(step.axis, broadcast).local_shape(shape)


def _counts(size: int, placement: Placement, axis: int) -> list[int]:
    n = placement.shape[axis]
    return [stop - start for start, stop in (balanced(size, n, r) for r in range(n))]


def _group(step: Step) -> Any:
    return step.before.placement.group(step.axis)


def _front(x: Any, dim: int) -> Any:
    return np.moveaxis(x, dim, 0) if dim else x  # the communicator copies what is not contiguous


def _gather(x: Any, shape: Sequence[int], step: Step) -> Any:
    dim = step.source.dim
    counts = _counts(_whole(shape, step)[dim], step.before.placement, step.axis)
    return np.moveaxis(_group(step).all_gather(_front(x, dim), counts), 0, dim)


def _part(step: Step, whole: Sequence[int], dim: int) -> tuple[slice, ...]:
    placement = step.before.placement
    start, stop = balanced(whole[dim], placement.shape[step.axis], placement.coords[step.axis])
    return (slice(None),) * dim + (slice(start, stop),)


def _slice(x: Any, shape: Sequence[int], step: Step) -> Any:
    return x[_part(step, x.shape, step.target.dim)]


def _exchange(x: Any, shape: Sequence[int], step: Step) -> Any:
    whole, placement = _whole(shape, step), step.before.placement
    give, keep = step.target.dim, step.source.dim
    given = _counts(whole[give], placement, step.axis)
    kept = _counts(whole[keep], placement, step.axis)
    ends = np.cumsum([0, *given])
    parts = [x[(slice(None),) * give + (slice(a, b),)] for a, b in itertools.pairwise(ends)]
    mine = given[placement.coords[step.axis]]
    shapes = []
    for rows in kept:
        dims = list(whole)
        dims[give], dims[keep] = mine, rows
        shapes.append(dims)
    return np.concatenate(_group(step).all_to_all(parts, shapes), axis=keep)


def _pad(x: Any, shape: Sequence[int], step: Step) -> Any:
    whole = _whole(shape, step)
    found = np.zeros_like(x, shape=whole)
    found[_part(step, whole, step.source.dim)] = x
    return found


def _one_keeps(x: Any, shape: Sequence[int], step: Step) -> Any:
    return x if step.before.placement.coords[step.axis] == 0 else np.zeros_like(x)


def _sum(x: Any, shape: Sequence[int], step: Step) -> Any:
    return _group(step).all_reduce(x)


def _sum_part(x: Any, shape: Sequence[int], step: Step) -> Any:
    dim = step.target.dim
    counts = _counts(x.shape[dim], step.before.placement, step.axis)
    return np.moveaxis(_group(step).reduce_scatter(_front(x, dim), counts), 0, dim)


_STEPS = {
    "SB": _gather,
    "BS": _slice,
    "SS": _exchange,
    "SP": _pad,
    "BP": _one_keeps,
    "PB": _sum,
    "PS": _sum_part,
}
