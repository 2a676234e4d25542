"""broadcast: all of the op but its kernel."""

from __future__ import annotations

from oprack.op import Attr

from oprack_collective.ops._attrs import RING_ID
from oprack_collective.ops._small_like import SmallLike


class Broadcast(SmallLike, type="broadcast"):
    r"""$$out = x_{root}$$: on each rank of the ring what the rank `root` has."""

    ring_id = RING_ID
    root = Attr(0, "The rank whose x counts.")
