"""bernoulli: all of the op but its kernel."""

from __future__ import annotations

from oprack.op import InferShapeContext, Input, OpDef, Output, empty_grad


class Bernoulli(OpDef, type="bernoulli"):
    r"""$$P(Out_i = 1) = X_i, \quad P(Out_i = 0) = 1 - X_i$$"""

    X = Input("Probabilities, of any shape.")
    Out = Output("Shape, type and LoD of X.")
    make_grad = empty_grad

    def infer_shape(ctx: InferShapeContext) -> None:
        ctx.set_dim("Out", ctx.dim("X"))
        ctx.share_lod("X", "Out")
