"""gumbel_softmax and its gradient."""

from __future__ import annotations

from oprack.op import Attr, GradOpDef, InferShapeContext, Input, OpDef, Output


class GumbelSoftmax(OpDef, type="gumbel_softmax"):
    r"""$$Out = \operatorname{softmax}((X + g) / temperature)$$ along dim `axis`, with g from Gumbel's distribution.

    With hard Out is 1 at the greatest element and 0 elsewhere.
    """

    X = Input("Logarithms of weights, of rank 1 or more.")
    Out = Output("Shape and LoD of X.")
    temperature = Attr(1.0, "The smaller, the nearer to 0 and 1.").greater_than(0)
    hard = Attr(False, "Whether to choose one element.")
    axis = Attr(-1, "Dim of the classes; negative counts from the end.")

    def infer_shape(ctx: InferShapeContext) -> None:
        ctx.axis("X")
        ctx.set_dim("Out", ctx.dim("X"))
        ctx.share_lod("X", "Out")


class GumbelSoftmaxGrad(GradOpDef, of=GumbelSoftmax, reads="Out"):
    r"""$$X@GRAD = Out \left(Out@GRAD - \sum_{axis} Out \cdot Out@GRAD\right) / temperature$$"""

    def infer_shape(ctx: InferShapeContext) -> None:
        ctx.same_dims("Out", "Out@GRAD")
        ctx.set_dim("X@GRAD", ctx.dim("Out"))
        ctx.share_lod("Out", "X@GRAD")
