"""Ops whose result has the values of their input."""

from __future__ import annotations

from oprack.op import REQUIRED, Attr, IdentityContext, InferShapeContext, Input, OpDef, Output, empty_grad
from oprack.op.sbp import linear_unary
from oprack.types import AttrType


class CopyOf(OpDef):
    """Out has the values of X."""

    X = Input("Tensor or SelectedRows.")
    Out = Output("Shape, type, LoD and kind of X.")
    make_grad = empty_grad
    sbp = linear_unary

    def infer_shape(ctx: InferShapeContext) -> None:
        ctx.set_dim("Out", ctx.dim("X"))
        ctx.share_lod("X", "Out")

    def identity(ctx: IdentityContext) -> bool:
        return True


DST_PLACE_TYPE = Attr(
    REQUIRED,
    "Where Paddle puts Out; here a run has one place, and what is fetched comes to the host.",
    type=AttrType.INT,
)
