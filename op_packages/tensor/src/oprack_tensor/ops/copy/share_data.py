"""share_data: all of the op but its kernels."""

from __future__ import annotations

from oprack.op import IdentityContext, InferShapeContext, Input, OpDef, Output, empty_grad


class ShareData(OpDef, type="share_data"):
    r"""$$Out = X$$; Paddle lets both share memory, which nothing that a program computes tells apart."""

    X = Input("Tensor or SelectedRows.")
    Out = Output("Shape, type, LoD and kind of X.")
    make_grad = empty_grad

    def infer_shape(ctx: InferShapeContext) -> None:
        ctx.set_dim("Out", ctx.dim("X"))
        ctx.share_lod("X", "Out")

    def identity(ctx: IdentityContext) -> bool:
        return True
