"""Moves a tensor from one placement to another: each rank gets the pieces of its new part from ranks that have them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from oprack.errors import InvalidArgumentError
from oprack.op.sbp import broadcast
from oprack.parallel.layouts.boxing import box
from oprack.parallel.layouts.layout import Layout, Region


def moved(part: Any, shape: Sequence[int], source: Layout, target: Layout) -> Any:
    """This rank's part in a layout on another placement of the same ranks; collective, with one exchange.

    Args:
        part: This rank's part in `source`.
        shape: The logical shape.
        source: The layout that `part` has.
        target: The layout that is wanted, on any placement.

    Returns:
        The part in `target`.

    Raises:
        InvalidArgumentError: The placements belong to different worlds, or a split dim does not exist.
    """
    world = source.placement.world
    if target.placement.world is not world:
        raise InvalidArgumentError(
            f"a tensor on {source.placement!r} is wanted on {target.placement!r} of another world; expected placements "
            "of the same ranks"
        )
    summed_source, summed_target = _summed(source), _summed(target)
    part = box(part, shape, source, summed_source)
    if not shape or summed_source.is_broadcast:
        part = part[summed_target.part(shape)]
    else:
        part = _exchange(part, shape, summed_source, summed_target)
    return box(part, shape, summed_target, target)


def _summed(layout: Layout) -> Layout:
    """The layout without partial sums: whole along their axes."""
    return layout.placement.layout([broadcast if s.kind == "P" else s for s in layout.sbps])


def _exchange(part: Any, shape: Sequence[int], source: Layout, target: Layout) -> Any:
    world = source.placement.world
    ranks = range(world.size)
    has = [source.region(shape, source.placement.coords_of(r)) for r in ranks]
    gets = [target.region(shape, target.placement.coords_of(r)) for r in ranks]
    holders: dict[Region, list[int]] = {}
    for r in ranks:
        holders.setdefault(has[r], []).append(r)

    def sender(region: Region, receiver: int) -> int:
        """The rank that sends a region to a rank: itself if it has the region, else one of its holders, in turns."""
        ranks = holders[region]
        return receiver if has[receiver] == region else ranks[receiver % len(ranks)]

    nothing = (0,) * len(shape)
    sent, shapes = [], [nothing] * world.size
    for r in ranks:
        mine = sender(has[world.rank], r) == world.rank
        piece = _common(has[world.rank], gets[r]) if mine else None
        sent.append(part[(slice(0, 0),) * len(shape)] if piece is None else part[_within(piece, has[world.rank])])
    own = gets[world.rank]
    received: dict[int, Region] = {}
    for region in holders:
        piece = _common(region, own)
        if piece is not None:
            r = sender(region, world.rank)
            received[r], shapes[r] = piece, tuple(b - a for a, b in piece)
    pieces = world.all_to_all(sent, shapes)
    result = np.zeros_like(part, shape=[b - a for a, b in own])
    for r, piece in received.items():
        result[_within(piece, own)] = pieces[r]
    return result


def _common(a: Region, b: Region) -> Region | None:
    """What two regions share; None for nothing."""
    both = tuple((max(p[0], q[0]), min(p[1], q[1])) for p, q in zip(a, b, strict=True))
    return both if all(start < stop for start, stop in both) else None


def _within(piece: Region, region: Region) -> tuple[slice, ...]:
    """The index of a piece in the array of a region."""
    return tuple(slice(a - start, b - start) for (a, b), (start, _) in zip(piece, region, strict=True))
