"""Ops that hand on several tensors."""

from __future__ import annotations

from oprack.op import InferShapeContext, Input, OpDef, Output, empty_grad


class Many(OpDef):
    """Out_i is X_i."""

    X = Input("Tensors of any shape.", duplicable=True)
    Out = Output("As many as X, with their shapes and LoD.", duplicable=True)
    make_grad = empty_grad

    def infer_shape(ctx: InferShapeContext) -> None:
        for i, dims in enumerate(ctx.dims("X")):
            ctx.set_dim("Out", dims, i)
            ctx.share_lod("X", "Out", i, i)
