"""Ops whose output has the shape of their input."""

from __future__ import annotations

from oprack.op import InferShapeContext, Input, OpDef, Output, empty_grad


class Like(OpDef):
    """Out has the shape of X."""

    X = Input("Tensor of any shape; the same shape on every rank.")
    Out = Output("Shape and LoD of X.")
    make_grad = empty_grad

    def infer_shape(ctx: InferShapeContext) -> None:
        ctx.set_dim("Out", ctx.dim("X"))
        ctx.share_lod("X", "Out")
