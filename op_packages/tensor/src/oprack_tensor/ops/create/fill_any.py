"""fill_any and its gradient."""

from __future__ import annotations

from oprack.op import Attr, GradOpDef, InferShapeContext, Input, OpDef, Output


class FillAny(OpDef, type="fill_any"):
    r"""$$Out = value$$ at every place of X."""

    X = Input("Tensor of any shape.")
    Out = Output("Shape, type and LoD of X.")
    value = Attr(0.0, "The value.", support_tensor=True)
    inplace = {"X": "Out"}

    def infer_shape(ctx: InferShapeContext) -> None:
        ctx.set_dim("Out", ctx.dim("X"))
        ctx.share_lod("X", "Out")


class FillAnyGrad(GradOpDef, of=FillAny, like="Out@GRAD"):
    r"""$$X@GRAD = 0$$"""

    inplace = {"Out@GRAD": "X@GRAD"}
