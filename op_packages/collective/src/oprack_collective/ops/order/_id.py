"""What ops share by which Paddle agrees on a ring before it is opened."""

from __future__ import annotations

from oprack.op import REQUIRED, Attr, InferShapeContext, InferVarTypeContext, OpDef, Output
from oprack.types import AttrType, VarType

from oprack_collective.ops._attrs import RING_ID


class GenId(OpDef):
    """Out says which ranks form the ring."""

    Out = Output("Which ranks form the ring, for c_comm_init.")
    endpoint = Attr(REQUIRED, "Address of this rank; here a name.", type=AttrType.STRING)
    other_endpoints = Attr([], "Addresses of the other ranks of the ring.", type=AttrType.STRINGS)
    rank = Attr(0, "This rank in the ring.")
    ring_id = RING_ID

    def infer_shape(ctx: InferShapeContext) -> None:
        """It has no shape."""

    def infer_var_type(ctx: InferVarTypeContext) -> None:
        ctx.set_kind("Out", VarType.RAW)
