"""Ops of Paddle 2.6's kernel library whose output has the shape of their input; their slots are written small."""

from __future__ import annotations

from oprack.op import InferShapeContext, Input, OpDef, Output, empty_grad


class SmallLike(OpDef):
    """out has the shape of x."""

    x = Input("Tensor of any shape; the same shape on every rank.")
    out = Output("Shape and LoD of x.")
    make_grad = empty_grad

    def infer_shape(ctx: InferShapeContext) -> None:
        ctx.set_dim("out", ctx.dim("x"))
        ctx.share_lod("x", "out")
