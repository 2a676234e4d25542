"""share_buffer: all of the op but its kernel."""

from __future__ import annotations

from oprack.op import Attr, InferShapeContext, Input, OpDef, Output, empty_grad
from oprack.types import AttrType


class ShareBuffer(OpDef, type="share_buffer"):
    r"""$$Out[i] = X[i],\quad XOut[i] = X[i]$$ Paddle lets them share memory, which nothing that a program computes
    tells apart."""

    X = Input("Tensors.", duplicable=True)
    Out = Output("As many tensors, of the shapes and LoD of X.", duplicable=True)
    XOut = Output("X itself again, for the order of ops.", duplicable=True)
    share_dims_and_dtype = Attr([], "For each X whether Out takes its shape; it always does.", type=AttrType.BOOLEANS)
    make_grad = empty_grad

    def infer_shape(ctx: InferShapeContext) -> None:
        for slot in ("Out", "XOut"):
            for i in range(ctx.output_count(slot)):
                ctx.set_dim(slot, ctx.dim("X", i), i)
                ctx.share_lod("X", slot, i, i)
