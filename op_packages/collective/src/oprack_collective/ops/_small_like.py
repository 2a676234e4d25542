"""What ops of Paddle 2.6's kernel library share, whose slots are written small."""

from __future__ import annotations

from oprack.op import InferShapeContext, Input, OpDef, Output, empty_grad

from oprack_collective.ops._attrs import RING_ID


class SmallLike(OpDef):
    """out has the shape of x."""

    x = Input("Tensor of any shape; the same shape on every rank.")
    out = Output("Shape and LoD of x.")
    make_grad = empty_grad

    def infer_shape(ctx: InferShapeContext) -> None:
        ctx.set_dim("out", ctx.dim("x"))
        ctx.share_lod("x", "out")


class SmallRows(OpDef):
    """out has more of x's rows or columns, or fewer."""

    x = Input("Tensor of rank 1 or more.")
    out = Output("No LoD.")
    ring_id = RING_ID
    make_grad = empty_grad
