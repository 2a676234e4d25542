"""nll_loss: all of the op but its kernels."""

from __future__ import annotations

from oprack.op import Attr, GradOp, GradOpDef, Input, OpDef, Output, dtype_of
from oprack.types import AttrType

_IGNORE = Attr(-100, "Labels of this value have loss and weight 0.", type=AttrType.LONG)
_REDUCTION = "none, mean (sum / Total_weight) or sum."


class NLLLoss(OpDef, type="nll_loss"):
    r"""$$Out = -Weight_{Label} \cdot X_{Label}$$, then reduced; X holds logarithms of probabilities"""

    X = Input("Log-probabilities [N, C] or [N, C, H, W].")
    Label = Input("Classes [N] or [N, H, W].")
    Weight = Input("Weight of each class [C].", dispensable=True)
    Out = Output("Shape of Label, or 0-D when reduced.")
    Total_weight = Output("0-D: sum of the weights of the labels; 0 without a reduction.")
    ignore_index = _IGNORE
    reduction = Attr("mean", _REDUCTION).in_set(("none", "mean", "sum"))
    expected_kernel_type = dtype_of("X")

    def infer_shape(ctx):
        x, label = ctx.require_rank("X", 2, 4), ctx.dim("Label")
        expected = (x[0], *x[2:])
        fits = len(label) == len(expected) and all(a == b or -1 in (a, b) for a, b in zip(label, expected, strict=True))
        ctx.require(fits, f"X has shape {list(x)} and Label {list(label)}; expected labels of shape {list(expected)}")
        if ctx.has_input("Weight"):
            w = ctx.require_rank("Weight", 1)
            ctx.require(w[0] == x[1] or -1 in (w[0], x[1]), f"Weight has shape {list(w)}; expected [{x[1]}]")
        ctx.set_dim("Out", label if ctx.attr("reduction") == "none" else ())
        ctx.set_dim("Total_weight", ())

    def make_grad(fwd):
        return GradOp(
            "nll_loss_grad",
            X=fwd.input("X"),
            Label=fwd.input("Label"),
            Weight=fwd.input("Weight"),
            Total_weight=fwd.output("Total_weight"),
            Out_grad=fwd.output_grad("Out"),
            X_grad=fwd.input_grad("X"),
            attrs=fwd.attrs,
        )


class NLLLossGrad(GradOpDef, type="nll_loss_grad"):
    r"""$$X@GRAD_{Label} = -Weight_{Label} \cdot Out@GRAD$$ (/ Total_weight for a mean), 0 elsewhere"""

    X = Input("Only its shape is read.")
    Label = Input("Classes.")
    Weight = Input("Weight of each class.", dispensable=True)
    Total_weight = Input("Sum of the weights of the labels.")
    Out_grad = Input("Gradient of Out.")
    X_grad = Output("Gradient of X, shape of X.")
    ignore_index = _IGNORE
    reduction = Attr("mean", _REDUCTION)
    expected_kernel_type = dtype_of("Out@GRAD")

    def infer_shape(ctx):
        ctx.set_dim("X@GRAD", ctx.dim("X"))
        ctx.share_lod("X", "X@GRAD")
