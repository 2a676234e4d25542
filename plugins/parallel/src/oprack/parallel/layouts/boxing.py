"""Boxing: from one layout of a tensor to another, axis by axis, with at most one collective for each step."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from oprack.errors import InvalidArgumentError
from oprack.op.sbp import Sbp, broadcast
from oprack.parallel.layouts.layout import Layout, Placement, balanced

_COLLECTIVE_OF = {"SS": "all_to_all", "SB": "all_gather", "PS": "reduce_scatter", "PB": "all_reduce"}
"""The collective of a step, by the kinds of its Sbps before and after (S: split, B: broadcast, P: partial sum). Other
steps send nothing."""


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
        source: The layout that a tensor has.
        target: The layout that it is to have.

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
    current = source
    while current is not target:
        step = _next_step(current, target)
        steps.append(step)
        current = step.after
    return tuple(steps)


def _next_step(now: Layout, target: Layout) -> Step:
    axes = range(len(now.sbps))
    legal = [
        Step(k, now.sbps[k], target.sbps[k], now)
        for k in axes
        if now.sbps[k] != target.sbps[k]
        and _blocking_axis(now, k, target.sbps[k]) is None
        and not _must_wait(now, k, target)
    ]
    if legal:
        # Splitting sends nothing and makes later messages smaller, so it comes first.
        return min(legal, key=lambda s: (_precedence(s), -s.axis))
    # No axis can change before another one does: the innermost axis that blocks one is made whole.
    blocked = [k for k in axes if now.sbps[k] != target.sbps[k]]
    inner = max(
        [b for k in blocked if (b := _blocking_axis(now, k, target.sbps[k])) is not None]
        # Two axes that swap their dims wait for each other; the inner one is made whole.
        or [k for k in blocked if now.sbps[k].kind == "S"]
    )
    return Step(inner, now.sbps[inner], broadcast, now)


def _blocking_axis(now: Layout, axis: int, to: Sbp) -> int | None:
    """The innermost axis inside `axis` that splits a dim that `axis` splits before or after; None for none."""
    dims = {s.dim for s in (now.sbps[axis], to) if s.kind == "S"}
    inner = [j for j in range(axis + 1, len(now.sbps)) if now.sbps[j].kind == "S" and now.sbps[j].dim in dims]
    return inner[-1] if inner else None


def _must_wait(now: Layout, axis: int, target: Layout) -> bool:
    """Whether the dim that this axis is to split is one that an outer axis still has to stop or start splitting."""
    dim = target.sbps[axis].dim
    outer = ((now.sbps[j], target.sbps[j]) for j in range(axis) if now.sbps[j] != target.sbps[j])
    return dim >= 0 and any(s.dim == dim for pair in outer for s in pair)


def _precedence(step: Step) -> int:
    """Which of several possible steps comes first: those that send nothing, and then those that send least."""
    kinds = step.source.kind + step.target.kind
    return {"BS": 0, "PS": 1, "SS": 2, "PB": 3, "SB": 4, "BP": 5, "SP": 6}[kinds]


def cost(source: Layout, target: Layout, shape: Sequence[int], itemsize: int) -> float:
    """Seconds that boxing takes, by latency and bandwidth; 0.0 where no message is sent."""
    return sum(step_cost(step, shape, itemsize) for step in route(source, target))


def step_cost(step: Step, shape: Sequence[int], itemsize: int) -> float:
    """Seconds that a step takes, by the link of its axis; the same on every rank, which all have to choose alike."""
    placement = step.before.placement
    collective = _COLLECTIVE_OF.get(step.source.kind + step.target.kind)
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


def start_gathering(x: Any, shape: Sequence[int], source: Layout, target: Layout) -> Callable[[], Any] | None:
    """Start to make this rank's part whole along an axis; it travels while the rank computes. Collective.

    Args:
        x: This rank's part in `source`, which stays as it is meanwhile.
        shape: The logical shape.
        source: The layout that `x` has.
        target: The layout that is wanted.

    Returns:
        What waits for the part in `target`; None where one gathering does not lead there.
    """
    steps = route(source, target)
    if len(steps) != 1 or steps[0].source.kind + steps[0].target.kind != "SB":
        return None
    step, dim = steps[0], steps[0].source.dim
    given = _move_to_front(x, dim)
    counts = _counts(_whole(shape, step)[dim], step.before.placement, step.axis)
    whole = np.empty_like(given, shape=(sum(counts), *given.shape[1:]), order="C")
    whole[_part(step, whole.shape, 0)] = given
    transfer = _group(step).beside().start_all_gather(whole, counts)
    return lambda: np.moveaxis(transfer.wait(), 0, dim)


# The functions of steps -----------------------------------------------------------------------------------------------
# Each takes this rank's part before the step, the logical shape, and the step, and returns the part after it.
def _whole(shape: Sequence[int], step: Step) -> tuple[int, ...]:
    """The shape of what the ranks of the step's axis have together."""
    return step.before.replaced(step.axis, broadcast).local_shape(shape)


def _counts(size: int, placement: Placement, axis: int) -> list[int]:
    """The size of each rank's part of a dim that an axis splits."""
    n = placement.shape[axis]
    return [stop - start for start, stop in (balanced(size, n, r) for r in range(n))]


def _group(step: Step) -> Any:
    return step.before.placement.group(step.axis)


def _move_to_front(x: Any, dim: int) -> Any:
    """The array with a dim as its first, along which collectives work; they copy what is not contiguous."""
    return np.moveaxis(x, dim, 0) if dim else x


def _gather(x: Any, shape: Sequence[int], step: Step) -> Any:
    dim = step.source.dim
    counts = _counts(_whole(shape, step)[dim], step.before.placement, step.axis)
    return np.moveaxis(_group(step).all_gather(_move_to_front(x, dim), counts), 0, dim)


def _part(step: Step, whole: Sequence[int], dim: int) -> tuple[slice, ...]:
    """The index of this rank's part along the step's axis, which splits dim `dim` of an array of shape `whole`."""
    placement = step.before.placement
    start, stop = balanced(whole[dim], placement.shape[step.axis], placement.coords[step.axis])
    return (slice(None),) * dim + (slice(start, stop),)


def _slice(x: Any, shape: Sequence[int], step: Step) -> Any:
    return x[_part(step, x.shape, step.target.dim)]


def _exchange(x: Any, shape: Sequence[int], step: Step) -> Any:
    whole, placement = _whole(shape, step), step.before.placement
    split, joined = step.target.dim, step.source.dim
    split_counts = _counts(whole[split], placement, step.axis)
    joined_counts = _counts(whole[joined], placement, step.axis)
    ends = np.cumsum([0, *split_counts])
    parts = [x[(slice(None),) * split + (slice(a, b),)] for a, b in itertools.pairwise(ends)]
    shapes = []
    for count in joined_counts:
        shape_of_part = list(whole)
        shape_of_part[split], shape_of_part[joined] = split_counts[placement.coords[step.axis]], count
        shapes.append(shape_of_part)
    return np.concatenate(_group(step).all_to_all(parts, shapes), axis=joined)


def _pad(x: Any, shape: Sequence[int], step: Step) -> Any:
    whole = _whole(shape, step)
    summand = np.zeros_like(x, shape=whole)
    summand[_part(step, whole, step.source.dim)] = x
    return summand


def _keep_on_first(x: Any, shape: Sequence[int], step: Step) -> Any:
    return x if step.before.placement.coords[step.axis] == 0 else np.zeros_like(x)


def _sum(x: Any, shape: Sequence[int], step: Step) -> Any:
    return _group(step).all_reduce(x)


def _sum_part(x: Any, shape: Sequence[int], step: Step) -> Any:
    dim = step.target.dim
    counts = _counts(x.shape[dim], step.before.placement, step.axis)
    return np.moveaxis(_group(step).reduce_scatter(_move_to_front(x, dim), counts), 0, dim)


_STEPS = {
    "SB": _gather,
    "BS": _slice,
    "SS": _exchange,
    "SP": _pad,
    "BP": _keep_on_first,
    "PB": _sum,
    "PS": _sum_part,
}
