"""diag (Paddle 1.x): all of the op but its kernel."""

from __future__ import annotations

from oprack.op import InferShapeContext, Input, OpDef, Output, empty_grad


class Diag(OpDef, type="diag"):
    r"""$$Out_{i,i} = Diagonal_i$$, 0 elsewhere."""

    Diagonal = Input("[n].")
    Out = Output("[n, n]; no LoD.")
    make_grad = empty_grad

    def infer_shape(ctx: InferShapeContext) -> None:
        ctx.set_dim("Out", ctx.require_rank("Diagonal", 1) * 2)
