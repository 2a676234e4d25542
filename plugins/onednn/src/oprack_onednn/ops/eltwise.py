"""onednn_eltwise: all of the op but its kernels."""

from __future__ import annotations

from oprack import op
from oprack.op import InferShapeContext, OpDef, empty_grad
from oprack_nn.ops.post_ops import post_ops_attr


class OneDNNEltwise(OpDef, type="onednn_eltwise"):
    r"""$$Out = p_n(... p_1(X))$$ with element-wise functions p; made by passes, for inference."""

    X = op.Input("Any shape.")
    Out = op.Output("Shape and LoD of X.")
    post_ops = post_ops_attr(residual=False)
    make_grad = empty_grad

    def infer_shape(ctx: InferShapeContext) -> None:
        ctx.set_dim("Out", ctx.dim("X"))
        ctx.share_lod("X", "Out")
