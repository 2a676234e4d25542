"""c_comm_init: its definition; the operator is in the file of this name below operators."""

from __future__ import annotations

from oprack.op import REQUIRED, Attr, InferShapeContext, Input, OpDef
from oprack.types import AttrType

from oprack_collective.ops._attrs import RING_ID


class CCommInit(OpDef, type="c_comm_init"):
    """Opens a ring among the ranks that name the same addresses; every rank of the world has to open one."""

    X = Input("What c_gen_nccl_id or another op of its kind made.")
    nranks = Attr(REQUIRED, "Number of ranks of the ring.", type=AttrType.INT)
    rank = Attr(REQUIRED, "This rank in the ring.", type=AttrType.INT)
    device_id = Attr(-1, "Paddle: the device of this rank.")
    ring_id = RING_ID
    endpoints = Attr("", "Addresses of the ranks, with commas; by default what X names.")

    def infer_shape(ctx: InferShapeContext) -> None:
        """There is no output."""
