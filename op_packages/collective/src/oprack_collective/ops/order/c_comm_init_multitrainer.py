"""c_comm_init_multitrainer: its definition; the operator is in the file of this name below operators."""

from __future__ import annotations

from oprack.op import REQUIRED, Attr, InferShapeContext, Input, OpDef
from oprack.types import AttrType

from oprack_collective.ops._attrs import RING_ID


class CCommInitMultitrainer(OpDef, type="c_comm_init_multitrainer"):
    """Opens a ring of all trainers, each of which is a rank here."""

    X = Input("What c_gen_nccl_id or another op of its kind made.")
    ntrainers = Attr(REQUIRED, "Number of trainers.", type=AttrType.INT)
    trainer_id = Attr(REQUIRED, "This trainer.", type=AttrType.INT)
    devices = Attr([], "Paddle: the devices of the process.", type=AttrType.INTS)
    ring_id = RING_ID

    def infer_shape(ctx: InferShapeContext) -> None:
        """There is no output."""
