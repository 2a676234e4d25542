"""bpr_loss: all of the op but its kernels."""

from __future__ import annotations

from oprack.op import GradOpDef, InferShapeContext, Input, OpDef, Output, dtype_of
from oprack.op.sbp import leading

from oprack_nn.ops.loss._family import require_labels


class BprLoss(OpDef, type="bpr_loss"):
    r"""Bayesian personalised ranking: $$Y = -\frac{1}{C - 1} \sum_{j \ne Label} \ln \sigma(X_{Label} - X_j)$$"""

    X = Input("Scores [..., C].")
    Label = Input("Positive item [..., 1].")
    Y = Output("Losses [..., 1], LoD of X.")
    expected_kernel_type = dtype_of("X")
    sbp = leading(("X", "Label"), ("Y",))

    def infer_shape(ctx: InferShapeContext) -> None:
        x, label = ctx.dim("X"), ctx.dim("Label")
        require_labels(ctx, x, label, "X and Label")
        ctx.require(x[-1] > 1 or x[-1] < 0, f"X has shape {list(x)}; expected two or more items in the last dim")
        ctx.set_dim("Y", (*x[:-1], 1))
        ctx.share_lod("X", "Y")


class BprLossGrad(GradOpDef, of=BprLoss, reads="X Label", grads_of="X"):
    r"""$$X@GRAD_j = Y@GRAD \cdot \sigma(X_j - X_{Label}) / (C - 1)$$, and minus their sum at the label"""

    expected_kernel_type = dtype_of("X")
