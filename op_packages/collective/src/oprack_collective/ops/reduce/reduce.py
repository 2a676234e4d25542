"""reduce: all of the op but its kernel."""

from __future__ import annotations

from oprack.op import Attr

from oprack_collective.ops._attrs import REDUCE_TYPE, RING_ID
from oprack_collective.ops._small_like import SmallLike


class Reduce(SmallLike, type="reduce"):
    r"""$$out = \sum_r x_r$$ over the ring, or another reduction, on the rank root_id; elsewhere out is x."""

    ring_id = RING_ID
    root_id = Attr(0, "The rank that gets the result.")
    reduce_type = REDUCE_TYPE
