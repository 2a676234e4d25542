"""sigmoid_cross_entropy_with_logits: all of the op but its kernels."""

from __future__ import annotations

from oprack.op import Attr, GradOpDef, InferShapeContext, Input, OpDef, Output
from oprack.op.sbp import SbpContext, Signature, elementwise


class SigmoidCrossEntropyWithLogits(OpDef, type="sigmoid_cross_entropy_with_logits"):
    r"""$$Out = \max(X, 0) - X \cdot Label + w \ln(1 + e^{-|X|})$$ per element, w = pos_weight or 1.

    This is Paddle 2.6's formula; its Python layer passes $$w = 1 + (pos\_weight - 1) Label$$.
    """

    X = Input("Scores of any shape.")
    Label = Input("Probabilities, shape of X.")
    pos_weight = Input("Weight of the logarithmic term, shape of X.", dispensable=True)
    Out = Output("Losses, shape and LoD of X.")
    normalize = Attr(False, "Divide by the number of labels that are not ignored.")
    ignore_index = Attr(-100, "Elements with this label have loss 0.")
    inplace = {"X": "Out"}

    def sbp(ctx: SbpContext) -> list[Signature]:
        if ctx.attr("normalize"):  # divides by how many labels count, in all of them
            return []
        return elementwise(("X", "Label", "pos_weight"), ("Out",))(ctx)

    def infer_shape(ctx: InferShapeContext) -> None:
        ctx.same_dims("X", "Label")
        ctx.set_dim("Out", ctx.dim("X"))
        ctx.share_lod("X", "Out")


class SigmoidCrossEntropyWithLogitsGrad(
    GradOpDef, of=SigmoidCrossEntropyWithLogits, reads="X Label pos_weight", grads_of="X"
):
    r"""$$X@GRAD = Out@GRAD (w \cdot \sigma(X) - Label + [X > 0] (1 - w))$$, w = pos_weight or 1.

    Paddle leaves the last term out and so differs from the derivative of its own forward where w is not 1.
    """

    inplace = {"Out@GRAD": "X@GRAD"}
