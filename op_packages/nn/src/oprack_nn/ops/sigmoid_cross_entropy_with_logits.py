"""sigmoid_cross_entropy_with_logits: all of the op but its kernels."""

from __future__ import annotations

from oprack.op import Attr, GradOp, GradOpDef, Input, OpDef, Output

_NORMALIZE = Attr(False, "Divide by the number of labels that are not ignored.")
_IGNORE = Attr(-100, "Elements with this label have loss 0.")


class SigmoidCrossEntropyWithLogits(OpDef, type="sigmoid_cross_entropy_with_logits"):
    r"""$$Out = \max(X, 0) - X \cdot Label + w \ln(1 + e^{-|X|})$$ per element, w = pos_weight or 1.

    This is Paddle 2.6's formula; its Python layer passes $$w = 1 + (pos\_weight - 1) Label$$.
    """

    X = Input("Scores of any shape.")
    Label = Input("Probabilities, shape of X.")
    pos_weight = Input("Weight of the logarithmic term, shape of X.", dispensable=True)
    Out = Output("Losses, shape and LoD of X.")
    normalize = _NORMALIZE
    ignore_index = _IGNORE
    inplace = {"X": "Out"}

    def infer_shape(ctx):
        ctx.same_dims("X", "Label")
        ctx.set_dim("Out", ctx.dim("X"))
        ctx.share_lod("X", "Out")

    def make_grad(fwd):
        return GradOp(
            "sigmoid_cross_entropy_with_logits_grad",
            X=fwd.input("X"),
            Label=fwd.input("Label"),
            pos_weight=fwd.input("pos_weight"),
            Out_grad=fwd.output_grad("Out"),
            X_grad=fwd.input_grad("X"),
            attrs=fwd.attrs,
        )


class SigmoidCrossEntropyWithLogitsGrad(GradOpDef, type="sigmoid_cross_entropy_with_logits_grad"):
    r"""$$X@GRAD = Out@GRAD (w \cdot \sigma(X) - Label + [X > 0] (1 - w))$$, w = pos_weight or 1.

    Paddle leaves the last term out and so differs from the derivative of its own forward where w is not 1.
    """

    X = Input("Scores.")
    Label = Input("Probabilities.")
    pos_weight = Input("Weight of the logarithmic term.", dispensable=True)
    Out_grad = Input("Gradient of Out.")
    X_grad = Output("Gradient of X, shape of X.")
    normalize = _NORMALIZE
    ignore_index = _IGNORE
    inplace = {"Out@GRAD": "X@GRAD"}

    def infer_shape(ctx):
        ctx.set_dim("X@GRAD", ctx.dim("X"))
        ctx.share_lod("X", "X@GRAD")
