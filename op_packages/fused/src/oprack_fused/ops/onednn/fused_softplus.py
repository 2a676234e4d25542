"""fused_softplus: all of the op but its kernel."""

from __future__ import annotations

from oprack.op import Attr, InferShapeContext, Input, OpDef, Output, empty_grad
from oprack.op.families import like

from oprack_fused.ops.onednn._post import FUSE_ACTIVATION, FUSE_ALPHA, FUSE_BETA


class FusedSoftplus(OpDef, type="fused_softplus"):
    r"""$$Out = f(\ln(1 + e^{beta \cdot X}) / beta)$$, f the activation; softplus is X itself above the threshold."""

    X = Input("Tensor of any shape.")
    Out = Output("Shape and LoD of X.")
    beta = Attr(1.0, "Factor.")
    threshold = Attr(20.0, "Where beta X is greater, softplus is X.")
    fuse_activation = FUSE_ACTIVATION
    fuse_alpha = FUSE_ALPHA
    fuse_beta = FUSE_BETA
    make_grad = empty_grad

    def infer_shape(ctx: InferShapeContext) -> None:
        like(ctx, [("Out", "X")])
