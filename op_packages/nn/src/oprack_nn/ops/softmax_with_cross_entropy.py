"""softmax_with_cross_entropy: all of the op but its kernels."""

from __future__ import annotations

from typing import Any

from oprack.op import Attr, GradOpDef, InferShapeContext, Input, OpDef, OpVersion, Output, dtype_of
from oprack.op.sbp import SbpContext, Signature, broadcast, leading, split
from oprack_math.composition import composed

from oprack_nn.ops.loss import loss_dims, require_labels


class SoftmaxWithCrossEntropy(OpDef, type="softmax_with_cross_entropy"):
    r"""$$Loss = -\ln p_{Label}$$ with $$p = softmax(Logits)$$, or with soft_label $$-\sum_j Label_j \ln p_j$$"""

    Logits = Input("Scores [..., classes, ...] with the classes at `axis`.")
    Label = Input("Indices with 1 at `axis` or without that dim; with soft_label distributions of Logits' shape.")
    Softmax = Output("Probabilities, shape and LoD of Logits.")
    Loss = Output("Losses with 1 at `axis`, or without that dim, LoD of Logits.")
    soft_label = Attr(False, "Label holds a distribution instead of an index.")
    use_softmax = Attr(True, "Logits are raw; false: they are probabilities already.")
    numeric_stable_mode = Attr(True, "Kept for old programs: the maximum is always subtracted.")
    ignore_index = Attr(-100, "Hard labels of this value have loss 0.")
    axis = Attr(-1, "Dim of the classes; may be negative.")
    inplace = {"Logits": "Softmax"}
    expected_kernel_type = dtype_of("Logits")

    def sbp(ctx: SbpContext) -> list[Signature]:
        # The dims before the classes are rows.
        logits = ctx.dim("Logits")
        last = len(logits) - 1
        axis = ctx.attr("axis", -1) % len(logits)
        found = leading(("Logits", "Label"), ("Softmax", "Loss"), axis)(ctx)
        plain = ctx.attr("use_softmax", True) and not ctx.attr("soft_label", False)
        if plain and axis == last and len(ctx.dim("Label")) == len(logits):
            # Classes in equal parts, over which ranks add up.
            inputs, outputs = {"Logits": split(last), "Label": broadcast}, {"Softmax": split(last), "Loss": broadcast}
            op = "c_softmax_with_cross_entropy"
            found.append(Signature(inputs, outputs, via=op, shared=logits[last]))
        return found

    def infer_shape(ctx: InferShapeContext) -> None:
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


class SoftmaxWithCrossEntropyGrad(
    GradOpDef,
    of=SoftmaxWithCrossEntropy,
    reads="Softmax Label Loss@GRAD Softmax@GRAD?",
    grads_of="Logits",
    like="Softmax",
):
    r"""$$Logits@GRAD = Loss@GRAD (Softmax - Label)$$, hard labels taken as one-hot; without use_softmax
    $$-Loss@GRAD \cdot Label / Softmax$$

    Where a gradient of Softmax is given, a slot that Paddle's op lacks, what flows through the softmax is added.
    """

    @composed
    def make_grad(o: Any, Softmax: Any, Label: Any, Loss_grad: Any, Softmax_grad: Any) -> Any:
        # Hard labels, those to ignore and soft ones are taken as the op itself takes them: its value for other Softmax,
        # such as zeros and ones, says what it multiplies and what it adds.
        def unit(softmax: Any) -> Any:
            one = o.constant(Loss_grad * 0.0 + 1.0)
            attrs = {name: x for name, x in o.attrs.items() if name != "op_role"}
            return o.constant(o.softmax_with_cross_entropy_grad(Softmax=softmax, Label=Label, Loss_grad=one, **attrs))

        if not o.attrs["use_softmax"]:
            return o.constant(unit(Softmax) * Softmax) / Softmax * Loss_grad
        added = unit(Softmax * 0.0)
        found = (Softmax * o.constant(unit(Softmax * 0.0 + 1.0) - added) + added) * Loss_grad
        if Softmax_grad is None:
            return found
        product = Softmax_grad * Softmax
        return found + product - Softmax * o.reduce_sum(X=product, dim=[o.attrs["axis"]], keep_dim=True)

    inplace = {"Softmax": "Logits@GRAD"}
    versions = OpVersion("softmax_with_cross_entropy_grad").checkpoint(
        "A gradient of Softmax.", ("new_input", "Softmax@GRAD", None)
    )
