"""cross_entropy: all of the op but its kernels."""

from __future__ import annotations

from oprack.op import Attr, GradOpDef, InferShapeContext, Input, OpDef, Output, dtype_of
from oprack.op.sbp import leading

from oprack_nn.ops.loss._family import IGNORE_INDEX, loss_dims, require_labels


class CrossEntropy(OpDef, type="cross_entropy"):
    r"""$$Y = -\ln X_{Label}$$, or with soft_label $$Y = -\sum_j Label_j \ln X_j$$; classes are in the last dim.

    X holds probabilities, as in Fluid. For logits, which Paddle 2's and PyTorch's functions of this name take, there
    are softmax_with_cross_entropy and oprack.nn.CrossEntropyLoss.
    """

    X = Input("Probabilities [..., classes], not logits.")
    Label = Input("Indices [..., 1] or [...]; with soft_label distributions of the shape of X.")
    Y = Output("Losses [..., 1] or [...], LoD of X.")
    soft_label = Attr(False, "Label holds a distribution instead of an index.")
    ignore_index = IGNORE_INDEX
    expected_kernel_type = dtype_of("X")
    sbp = leading(("X", "Label"), ("Y",), lambda ctx: len(ctx.dim("X")) - 1)

    def infer_shape(ctx: InferShapeContext) -> None:
        x, label = ctx.dim("X"), ctx.dim("Label")
        if ctx.attr("soft_label"):
            ctx.same_dims("X", "Label")
        else:
            require_labels(ctx, x, label, "X and Label")
        ctx.set_dim("Y", loss_dims(x, label))
        ctx.share_lod("X", "Y")


class CrossEntropyGrad(GradOpDef, of=CrossEntropy, reads="X Label", grads_of="X"):
    r"""$$X@GRAD_j = -Y@GRAD \cdot Label_j / X_j$$, hard labels taken as one-hot"""

    expected_kernel_type = dtype_of("X")
