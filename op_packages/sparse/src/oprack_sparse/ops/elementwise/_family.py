"""What functions of two sparse tensors share."""

from __future__ import annotations

from oprack.op import GradOpDef, InferShapeContext, Input, OpDef, Output


class Binary(OpDef):
    """A function of two sparse tensors of one layout and shape, where either lists an element."""

    x = Input("Sparse tensor.")
    y = Input("Sparse tensor of x's layout and shape; what it does not list counts as zero.")
    out = Output("Sparse tensor that lists what x or y lists, sorted by coordinates.")

    def infer_shape(ctx: InferShapeContext) -> None:
        ctx.same_dims("x", "y")
        ctx.set_dim("out", ctx.dim("x"))


class BinaryGrad(GradOpDef, reads="x y"):
    """Gradient of a Binary: each over the pattern of its tensor."""
