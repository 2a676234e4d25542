"""fused_softmax_mask_upper_triangle and its gradient."""

from __future__ import annotations

from oprack.op import GradOpDef, InferShapeContext, Input, OpDef, Output
from oprack.op.sbp import leading


class FusedSoftmaxMaskUpperTriangle(OpDef, type="fused_softmax_mask_upper_triangle"):
    r"""$$Out_{s} = \operatorname{softmax}(X_{s, 0 \dots s})$$ zero for what lies after step $s$."""

    X = Input("[B, H, S, S].")
    Out = Output("Shape of X.")
    sbp = leading(("X",), ("Out",))

    def infer_shape(ctx: InferShapeContext) -> None:
        dims = ctx.require_rank("X", 4)
        ctx.require(
            dims[2] == dims[3] or -1 in dims[2:], f"X has shape {list(dims)}; expected square matrices in its last dims"
        )
        ctx.set_dim("Out", dims)


class FusedSoftmaxMaskUpperTriangleGrad(GradOpDef, of=FusedSoftmaxMaskUpperTriangle, reads="Out", like="Out"):
    r"""$$X@GRAD = Out \odot (Out@GRAD - \sum_{last} Out \odot Out@GRAD)$$"""
