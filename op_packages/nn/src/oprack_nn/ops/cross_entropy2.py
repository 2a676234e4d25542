"""cross_entropy2: all of the op but its kernels."""

from __future__ import annotations

from oprack.op import GradOpDef, InferShapeContext, Input, OpDef, Output, dtype_of

from oprack_nn.ops.loss import IGNORE_INDEX, loss_dims, require_labels


class CrossEntropy2(OpDef, type="cross_entropy2"):
    r"""$$Y = -\ln X_{Label}$$ with hard labels; keeps the probability that was picked for the gradient"""

    X = Input("Probabilities [..., classes].")
    Label = Input("Indices [..., 1] or [...].")
    Y = Output("Losses [..., 1] or [...], LoD of X.")
    XShape = Output("Empty; its dims carry the shape of X to the gradient.", stop_gradient=True)
    MatchX = Output("Probabilities picked, shape of Y; 0 for an ignored label.", stop_gradient=True)
    ignore_index = IGNORE_INDEX
    expected_kernel_type = dtype_of("X")

    def infer_shape(ctx: InferShapeContext) -> None:
        x, label = ctx.dim("X"), ctx.dim("Label")
        require_labels(ctx, x, label, "X and Label")
        for slot in ("Y", "MatchX"):
            ctx.set_dim(slot, loss_dims(x, label))
        ctx.share_lod("X", "Y")
        ctx.set_dim("XShape", (*x, 0))
        ctx.share_lod("X", "XShape")


class CrossEntropyGrad2(
    GradOpDef,
    of=CrossEntropy2,
    type="cross_entropy_grad2",
    reads="Y@GRAD MatchX Label",
    shape_of="XShape",
    grads_of="X",
):
    r"""$$X@GRAD_{Label} = -Y@GRAD / MatchX$$, 0 elsewhere"""

    def infer_shape(ctx: InferShapeContext) -> None:
        ctx.set_dim("X@GRAD", ctx.dim("XShape")[:-1])
        ctx.share_lod("XShape", "X@GRAD")
