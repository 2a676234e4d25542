"""all_reduce: all of the op but its kernel."""

from __future__ import annotations

from oprack_collective.ops._attrs import REDUCE_TYPE, RING_ID
from oprack_collective.ops._small_like import SmallLike


class AllReduce(SmallLike, type="all_reduce"):
    r"""$$out = \sum_r x_r$$ over the ranks r of the ring, on each of them; or another reduction than the sum."""

    ring_id = RING_ID
    reduce_type = REDUCE_TYPE
