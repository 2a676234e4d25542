"""dist and its gradient."""

from __future__ import annotations

from oprack.op import Attr, GradOpDef, InferShapeContext, Input, OpDef, Output

from oprack_math.ops._broadcast import broadcast_dims


class Dist(OpDef, type="dist"):
    r"""$$Out = \left(\sum |X - Y|^p\right)^{1/p}$$

    p = 0 counts where they differ; infinity gives the greatest, minus infinity the smallest difference.
    """

    X = Input("Tensor of any shape.")
    Y = Input("Tensor whose shape broadcasts with X's.")
    Out = Output("0-D; no LoD.")
    p = Attr(2.0, "The order; 0, infinity and minus infinity are allowed.")

    def infer_shape(ctx: InferShapeContext) -> None:
        broadcast_dims(ctx.dim("X"), ctx.dim("Y"), -1, ctx.op_type)
        ctx.set_dim("Out", ())


class DistGrad(GradOpDef, of=Dist, reads="X Y Out"):
    r"""$$X@GRAD = Out@GRAD \cdot \operatorname{sign}(X - Y) |X - Y|^{p-1} / Out^{p-1},\quad Y@GRAD = -X@GRAD$$

    summed where they were broadcast; 0 for p = 0 and where Out is 0.
    """
