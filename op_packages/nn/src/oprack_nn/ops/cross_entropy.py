"""cross_entropy and cross_entropy2: losses of probabilities; all of the ops but their kernels."""

from __future__ import annotations

from oprack.op import Attr, GradOpDef, Input, OpDef, Output, dtype_of

from oprack_nn.ops._loss import loss_dims, require_labels

_IGNORE = Attr(-100, "Rows with this hard label have loss 0.")


class CrossEntropy(OpDef, type="cross_entropy"):
    r"""$$Y = -\ln X_{Label}$$, or with soft_label $$Y = -\sum_j Label_j \ln X_j$$; classes are in the last dim.

    X holds probabilities, as in Fluid. For logits, which Paddle 2's and PyTorch's functions of this name take, there
    are softmax_with_cross_entropy and oprack.nn.CrossEntropyLoss.
    """

    X = Input("Probabilities [..., classes], not logits.")
    Label = Input("Indices [..., 1] or [...]; with soft_label distributions of the shape of X.")
    Y = Output("Losses [..., 1] or [...], LoD of X.")
    soft_label = Attr(False, "Label holds a distribution instead of an index.")
    ignore_index = _IGNORE
    expected_kernel_type = dtype_of("X")

    def infer_shape(ctx):
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


class CrossEntropy2(OpDef, type="cross_entropy2"):
    r"""$$Y = -\ln X_{Label}$$ with hard labels; keeps the probability that was picked for the gradient"""

    X = Input("Probabilities [..., classes].")
    Label = Input("Indices [..., 1] or [...].")
    Y = Output("Losses [..., 1] or [...], LoD of X.")
    XShape = Output("Empty; its dims carry the shape of X to the gradient.")
    MatchX = Output("Probabilities picked, shape of Y; 0 for an ignored label.")
    ignore_index = _IGNORE
    expected_kernel_type = dtype_of("X")

    def infer_shape(ctx):
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

    def infer_shape(ctx):
        ctx.set_dim("X@GRAD", ctx.dim("XShape")[:-1])
        ctx.share_lod("XShape", "X@GRAD")
