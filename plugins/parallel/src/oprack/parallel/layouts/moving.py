"""Moving a tensor from one placement to another: each rank gets the pieces of its new part from who has them."""

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
    summed, whole = _without_summands(source), _without_summands(target)
    part = box(part, shape, source, summed)
    if not shape or summed.is_broadcast:
        part = part[whole.part(shape)]
    else:
        part = _exchanged(part, shape, summed, whole)
    return box(part, shape, whole, target)


def _without_summands(layout: Layout) -> Layout:
    return layout.placement.layout([broadcast if s.kind == "P" else s for s in layout.sbps])


def _exchanged(part: Any, shape: Sequence[int], source: Layout, target: Layout) -> Any:
    world = source.placement.world
    ranks = range(world.size)
    has = [source.region(shape, source.placement.coords_of(r)) for r in ranks]
    gets = [target.region(shape, target.placement.coords_of(r)) for r in ranks]
    holders: dict[Region, list[int]] = {}
    for r in ranks:
        holders.setdefault(has[r], []).append(r)

    def giver(region: Region, taker: int) -> int:
        """Who gives a region to a rank: itself where it has it, else one of those that do, in turns."""
        them = holders[region]
        return taker if has[taker] == region else them[taker % len(them)]

    nothing = (0,) * len(shape)
    given, shapes = [], [nothing] * world.size
    for r in ranks:
        mine = giver(has[world.rank], r) == world.rank
        piece = _common(has[world.rank], gets[r]) if mine else None
        given.append(part[(slice(0, 0),) * len(shape)] if piece is None else part[_within(piece, has[world.rank])])
    own = gets[world.rank]
    taken: dict[int, Region] = {}
    for region in holders:
        piece = _common(region, own)
        if piece is not None:
            r = giver(region, world.rank)
            taken[r], shapes[r] = piece, tuple(b - a for a, b in piece)
    arrived = world.all_to_all(given, shapes)
    found = np.zeros_like(part, shape=[b - a for a, b in own])
    for r, piece in taken.items():
        found[_within(piece, own)] = arrived[r]
    return found


def _common(a: Region, b: Region) -> Region | None:
    """What two regions share; None for nothing."""
    both = tuple((max(p[0], q[0]), min(p[1], q[1])) for p, q in zip(a, b, strict=True))
    return both if all(start < stop for start, stop in both) else None


def _within(piece: Region, region: Region) -> tuple[slice, ...]:
    """The index of a piece in the array of a region."""
    return tuple(slice(a - start, b - start) for (a, b), (start, _) in zip(piece, region, strict=True))
