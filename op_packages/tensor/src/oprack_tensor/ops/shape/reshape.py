"""reshape: all of the op but its kernels."""

from __future__ import annotations

from oprack.op import GradOpDef, InferShapeContext

from oprack_tensor.ops.shape._reshape import ReshapeOp


class Reshape(ReshapeOp, type="reshape"):
    r"""$$Out.flat = X.flat$$ in the shape `shape`: 0 copies a dim of X, one -1 takes what is left."""


class ReshapeGrad(
    GradOpDef, of=Reshape, reads="Out@GRAD", shape_of="X Shape ShapeTensor Out?", grads_of="X? Shape? ShapeTensor?"
):
    """X@GRAD is Out@GRAD in the shape of X."""

    inplace = {"Out@GRAD": "X@GRAD"}

    def infer_shape(ctx: InferShapeContext) -> None:
        ctx.set_dim("X@GRAD", ctx.dim("X"))
        ctx.share_lod("X", "X@GRAD")
