"""Ops that hand the shape of X on to their gradient, by an output XShape."""

from __future__ import annotations

from oprack.op import GradOpDef, InferShapeContext, Output

XSHAPE = Output("Empty, [0, dims of X]: carries X's shape and LoD to the gradient.", intermediate=True, extra=True)


def keep_shape(ctx: InferShapeContext) -> None:
    """Sets XShape."""
    ctx.set_dim("XShape", (0, *ctx.dim("X")))
    ctx.share_lod("X", "XShape")


class XShapeGrad(GradOpDef, reads="Out@GRAD", shape_of="XShape", grads_of="X"):
    """Out@GRAD in the shape of X."""

    inplace = {"Out@GRAD": "X@GRAD"}

    def infer_shape(ctx: InferShapeContext) -> None:
        ctx.set_dim("X@GRAD", ctx.dim("XShape")[1:])
        ctx.share_lod("XShape", "X@GRAD")
