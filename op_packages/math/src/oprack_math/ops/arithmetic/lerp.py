"""lerp and its gradient."""

from __future__ import annotations

from oprack.op import GradOpDef, InferShapeContext, Input, OpDef, Output
from oprack.op.sbp import elementwise

from oprack_math.ops._broadcast import broadcast_dims


class Lerp(OpDef, type="lerp"):
    r"""$$Out = X + Weight \cdot (Y - X)$$"""

    X = Input("Tensor of any shape, the result of weight 0.")
    Y = Input("Tensor whose shape broadcasts with X's, the result of weight 1.")
    Weight = Input("Tensor whose shape broadcasts with theirs.")
    Out = Output("The broadcast shape, LoD of X.")
    inplace = {"X": "Out"}
    sbp = elementwise(("X", "Y", "Weight"), ("Out",))

    def infer_shape(ctx: InferShapeContext) -> None:
        dims = broadcast_dims(ctx.dim("X"), ctx.dim("Y"), -1, ctx.op_type)
        ctx.set_dim("Out", broadcast_dims(dims, ctx.dim("Weight"), -1, ctx.op_type))
        ctx.share_lod("X", "Out")


class LerpGrad(GradOpDef, of=Lerp, reads="X Y Weight Out", grads_of="X Y"):
    r"""$$X@GRAD = Out@GRAD (1 - Weight),\quad Y@GRAD = Out@GRAD \cdot Weight$$ Weight gets no gradient."""
