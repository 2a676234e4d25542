"""c_comm_init_all: its definition; the operator is in the file of this name below operators."""

from __future__ import annotations

from oprack.op import Attr, InferShapeContext, OpDef
from oprack.types import AttrType

from oprack_collective.ops._attrs import RING_ID


class CCommInitAll(OpDef, type="c_comm_init_all"):
    """Opens a ring of all ranks. In Paddle one process has all devices; here each rank is a process."""

    devices = Attr([], "Paddle: the devices of the process.", type=AttrType.INTS)
    ring_id = RING_ID

    def infer_shape(ctx: InferShapeContext) -> None:
        """There is no output."""
