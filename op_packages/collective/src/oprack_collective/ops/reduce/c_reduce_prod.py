"""c_reduce_prod: all of the op but its kernel."""

from __future__ import annotations

from oprack.op import Attr

from oprack_collective.ops._attrs import RING_ID, USE_CALC_STREAM
from oprack_collective.ops._like import Like


class CReduceProd(Like, type="c_reduce_prod"):
    r"""$$Out = \prod_r X_r$$ over the ranks r of the ring, on the rank `root_id`; on the others Out is X."""

    ring_id = RING_ID
    root_id = Attr(0, "The rank that gets the result.")
    use_calc_stream = USE_CALC_STREAM
