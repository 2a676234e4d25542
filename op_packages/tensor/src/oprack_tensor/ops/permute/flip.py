"""flip: all of the op but its kernel."""

from __future__ import annotations

from oprack.op import REQUIRED, Attr, ForwardOp, GradOp, InferShapeContext, Input, OpDef, OpVersion, Output
from oprack.types import AttrType


class Flip(OpDef, type="flip"):
    """Out is X with the order along each dim of `axis` reversed."""

    X = Input("Tensor of any shape.")
    Out = Output("Shape and LoD of X.")
    axis = Attr(REQUIRED, "Dims to reverse; negative ones count from the end.", type=AttrType.INTS)
    versions = OpVersion("flip").checkpoint(
        "The dims to reverse are named axis.", ("new_attr", "axis", None), ("delete_attr", "dims", None)
    )

    def infer_shape(ctx: InferShapeContext) -> None:
        ctx.axes("X")
        ctx.set_dim("Out", ctx.dim("X"))
        ctx.share_lod("X", "Out")

    def make_grad(fwd: ForwardOp) -> GradOp:
        return GradOp("flip", X=fwd.output_grad("Out"), Out=fwd.input_grad("X"), attrs=fwd.attrs)
