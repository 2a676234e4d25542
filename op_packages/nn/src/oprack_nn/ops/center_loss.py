"""center_loss (Paddle 1.x) and its gradient: all of the ops but their kernels."""

from __future__ import annotations

from oprack.op import REQUIRED, Attr, GradOpDef, InferShapeContext, Input, OpDef, Output, dtype_of
from oprack.types import AttrType


class CenterLoss(OpDef, type="center_loss"):
    r"""$$Loss_i = \frac{1}{2} \|X_i - Centers_{Label_i}\|^2$$ and, with need_update, $$CentersOut_c = Centers_c +
    rate \frac{\sum_{Label_i = c} X_i - Centers_c}{1 + |\{i : Label_i = c\}|}$$

    Features of one class are drawn to a centre that follows them (Wen et al., 2016).
    """

    X = Input("Features [N, D].")
    Label = Input("Class of each row [N, 1], int64 or int32.")
    Centers = Input("[cluster_num, D].")
    CenterUpdateRate = Input("One element, the rate.")
    CentersOut = Output("Centers after the step; usually the variable of Centers.", stop_gradient=True)
    SampleCenterDiff = Output("X less the centre of each row [N, D].", stop_gradient=True)
    Loss = Output("[N, 1].")
    cluster_num = Attr(REQUIRED, "Number of classes.", type=AttrType.INT).greater_than(0)
    need_update = Attr(REQUIRED, "Whether the centres move.", type=AttrType.BOOLEAN)
    inplace = {"Centers": "CentersOut"}
    expected_kernel_type = dtype_of("X")

    def infer_shape(ctx: InferShapeContext) -> None:
        rows, width = ctx.require_rank("X", 2)
        ctx.require_dims("Centers", (ctx.attr("cluster_num"), width), why="a centre for each class, as wide as X")
        ctx.set_dim("CentersOut", ctx.dim("Centers"))
        ctx.set_dim("SampleCenterDiff", (rows, width))
        ctx.set_dim("Loss", (rows, 1))
        ctx.share_lod("X", "Loss")


class CenterLossGrad(GradOpDef, of=CenterLoss, reads="SampleCenterDiff Loss@GRAD", shape_of="X", grads_of="X"):
    r"""$$X@GRAD = Loss@GRAD \cdot SampleCenterDiff$$"""
