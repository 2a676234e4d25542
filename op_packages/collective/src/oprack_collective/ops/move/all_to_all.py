"""all_to_all: all of the op but its kernel."""

from __future__ import annotations

from oprack_collective.ops._attrs import RING_ID
from oprack_collective.ops._small_like import SmallLike


class AllToAll(SmallLike, type="all_to_all"):
    r"""$$out = [x_{0, rank}, x_{1, rank}, \dots]$$: the parts of the rows that the ranks have for this one."""

    ring_id = RING_ID
