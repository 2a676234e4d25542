"""softmax_with_cross_entropy: all of the op but its kernels."""

from __future__ import annotations

from oprack.op import Attr, GradOp, GradOpDef, Input, OpDef, Output, dtype_of

from oprack_nn.ops._loss import loss_dims, require_labels

_SOFT = Attr(False, "Label holds a distribution instead of an index.")
_USE = Attr(True, "Logits are raw; false: they are probabilities already.")
_STABLE = Attr(True, "Kept for old programs: the maximum is always subtracted.")
_IGNORE = Attr(-100, "Hard labels of this value have loss 0.")
_AXIS = Attr(-1, "Dim of the classes; may be negative.")


class SoftmaxWithCrossEntropy(OpDef, type="softmax_with_cross_entropy"):
    r"""$$Loss = -\ln p_{Label}$$ with $$p = softmax(Logits)$$, or with soft_label $$-\sum_j Label_j \ln p_j$$"""

    Logits = Input("Scores [..., classes, ...] with the classes at `axis`.")
    Label = Input("Indices with 1 at `axis` or without that dim; with soft_label distributions of Logits' shape.")
    Softmax = Output("Probabilities, shape and LoD of Logits.")
    Loss = Output("Losses with 1 at `axis`, or without that dim, LoD of Logits.")
    soft_label = _SOFT
    use_softmax = _USE
    numeric_stable_mode = _STABLE
    ignore_index = _IGNORE
    axis = _AXIS
    inplace = {"Logits": "Softmax"}
    expected_kernel_type = dtype_of("Logits")

    def infer_shape(ctx):
        logits, label, axis = ctx.dim("Logits"), ctx.dim("Label"), ctx.attr("axis")
        ctx.require(-len(logits) <= axis < len(logits), f"axis is {axis}, but Logits has shape {list(logits)}")
        if ctx.attr("soft_label"):
            ctx.same_dims("Logits", "Label")
        else:
            require_labels(ctx, logits, label, "Logits and Label", axis)
        ctx.set_dim("Softmax", logits)
        ctx.set_dim("Loss", loss_dims(logits, label, axis))
        ctx.share_lod("Logits", "Softmax")
        ctx.share_lod("Logits", "Loss")

    def make_grad(fwd):
        return GradOp(
            "softmax_with_cross_entropy_grad",
            Label=fwd.input("Label"),
            Softmax=fwd.output("Softmax"),
            Loss_grad=fwd.output_grad("Loss"),
            Logits_grad=fwd.input_grad("Logits"),
            attrs=fwd.attrs,
        )


class SoftmaxWithCrossEntropyGrad(GradOpDef, type="softmax_with_cross_entropy_grad"):
    r"""$$Logits@GRAD = Loss@GRAD (Softmax - Label)$$, hard labels taken as one-hot; without use_softmax
    $$-Loss@GRAD \cdot Label / Softmax$$"""

    Softmax = Input("Probabilities.")
    Label = Input("Labels.")
    Loss_grad = Input("Gradient of Loss.")
    Logits_grad = Output("Gradient of Logits, shape of Softmax.")
    soft_label = _SOFT
    use_softmax = _USE
    numeric_stable_mode = _STABLE
    ignore_index = _IGNORE
    axis = _AXIS
    inplace = {"Softmax": "Logits@GRAD"}
    expected_kernel_type = dtype_of("Loss@GRAD")

    def infer_shape(ctx):
        ctx.set_dim("Logits@GRAD", ctx.dim("Softmax"))
        ctx.share_lod("Softmax", "Logits@GRAD")
