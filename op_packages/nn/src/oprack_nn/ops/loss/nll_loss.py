"""nll_loss: all of the op but its kernels."""

from __future__ import annotations

from oprack.op import Attr, GradOpDef, InferShapeContext, Input, OpDef, Output, dtype_of
from oprack.types import AttrType

_REDUCTION = "none, mean (sum / Total_weight) or sum."


class NLLLoss(OpDef, type="nll_loss"):
    r"""$$Out = -Weight_{Label} \cdot X_{Label}$$, then reduced; X holds logarithms of probabilities"""

    X = Input("Log-probabilities [N, C] or [N, C, H, W].")
    Label = Input("Classes [N] or [N, H, W].")
    Weight = Input("Weight of each class [C].", dispensable=True)
    Out = Output("Shape of Label, or 0-D when reduced.")
    Total_weight = Output("0-D: sum of the weights of the labels; 0 without a reduction.", stop_gradient=True)
    ignore_index = Attr(-100, "Labels of this value have loss and weight 0.", type=AttrType.LONG)
    reduction = Attr("mean", _REDUCTION).in_set(("none", "mean", "sum"))
    expected_kernel_type = dtype_of("X")

    def infer_shape(ctx: InferShapeContext) -> None:
        x, label = ctx.require_rank("X", 2, 4), ctx.dim("Label")
        expected = (x[0], *x[2:])
        fits = len(label) == len(expected) and all(a == b or -1 in (a, b) for a, b in zip(label, expected, strict=True))
        ctx.require(fits, f"X has shape {list(x)} and Label {list(label)}; expected labels of shape {list(expected)}")
        if ctx.has_input("Weight"):
            w = ctx.require_rank("Weight", 1)
            ctx.require(w[0] == x[1] or -1 in (w[0], x[1]), f"Weight has shape {list(w)}; expected [{x[1]}]")
        ctx.set_dim("Out", label if ctx.attr("reduction") == "none" else ())
        ctx.set_dim("Total_weight", ())


class NLLLossGrad(GradOpDef, of=NLLLoss, reads="X Label Weight Total_weight Out@GRAD", grads_of="X"):
    r"""$$X@GRAD_{Label} = -Weight_{Label} \cdot Out@GRAD$$ (/ Total_weight for a mean), 0 elsewhere"""
