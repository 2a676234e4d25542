"""minus: all of the op but its kernel."""

from __future__ import annotations

from oprack.op import ForwardOp, GradOp, InferShapeContext, Input, OpDef, Output
from oprack.op.sbp import elementwise


class Minus(OpDef, type="minus"):
    r"""$$Out = X - Y$$ of two tensors of one shape; programs before 1.8 have it."""

    X = Input("Tensor of any shape.")
    Y = Input("Tensor of X's shape.")
    Out = Output("Shape and LoD of X.")
    sbp = elementwise(("X", "Y"), ("Out",), linear=(("X", "Y"),))

    def infer_shape(ctx: InferShapeContext) -> None:
        ctx.same_dims("X", "Y")
        ctx.set_dim("Out", ctx.dim("X"))
        ctx.share_lod("X", "Out")

    def make_grad(fwd: ForwardOp) -> list[GradOp]:
        """Out@GRAD itself, and its negative."""
        pairs = (("X", 1.0), ("Y", -1.0))
        out = fwd.output_grad("Out")
        return [GradOp("scale", X=out, Out=fwd.input_grad(slot), attrs={"scale": sign}) for slot, sign in pairs]
