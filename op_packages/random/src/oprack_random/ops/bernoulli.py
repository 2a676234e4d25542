"""bernoulli: all of the op but its kernel."""

from __future__ import annotations

from oprack.op import InferShapeContext, Input, OpDef, Output, empty_grad


class Bernoulli(OpDef, type="bernoulli"):
    """Each element of Out is 1 with the probability X, else 0."""

    X = Input("Probabilities, of any shape.")
    Out = Output("Shape, type and LoD of X.")
    make_grad = empty_grad

    def infer_shape(ctx: InferShapeContext) -> None:
        ctx.set_dim("Out", ctx.dim("X"))
        ctx.share_lod("X", "Out")
