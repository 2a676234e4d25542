"""npu_identity: all of the op but its kernel."""

from __future__ import annotations

from oprack.op import Attr, InferShapeContext, Input, OpDef, Output, empty_grad
from oprack.op.sbp import linear_unary


class NpuIdentity(OpDef, type="npu_identity"):
    r"""$$out = x$$ Paddle changes the layout of memory on an NPU here, which has no meaning elsewhere."""

    x = Input("Tensor of any shape.")
    out = Output("Shape and LoD of x.")
    format = Attr(-1, "Layout on an NPU; it has no effect.")
    make_grad = empty_grad
    sbp = linear_unary

    def infer_shape(ctx: InferShapeContext) -> None:
        ctx.set_dim("out", ctx.dim("x"))
        ctx.share_lod("x", "out")
