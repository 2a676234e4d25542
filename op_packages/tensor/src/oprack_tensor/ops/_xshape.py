"""The gradient of ops that hand the shape of X on by an output XShape."""

from __future__ import annotations

from oprack.op import GradOpDef


class XShapeGrad(GradOpDef, reads="Out@GRAD", shape_of="XShape", grads_of="X"):
    """Out@GRAD in the shape of X."""

    inplace = {"Out@GRAD": "X@GRAD"}

    def infer_shape(ctx):
        ctx.set_dim("X@GRAD", ctx.dim("XShape")[1:])
        ctx.share_lod("XShape", "X@GRAD")
