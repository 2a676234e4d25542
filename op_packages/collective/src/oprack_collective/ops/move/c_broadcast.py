"""c_broadcast: all of the op but its kernel."""

from __future__ import annotations

from oprack.op import Attr

from oprack_collective.ops._attrs import RING_ID, USE_CALC_STREAM
from oprack_collective.ops._like import Like


class CBroadcast(Like, type="c_broadcast"):
    r"""$$Out = X_{root}$$: on each rank of the ring what the rank `root` has."""

    ring_id = RING_ID
    root = Attr(0, "The rank whose X counts.")
    use_calc_stream = USE_CALC_STREAM
