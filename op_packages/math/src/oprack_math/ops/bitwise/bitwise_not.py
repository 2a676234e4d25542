"""bitwise_not: all of the op but its kernels."""

from __future__ import annotations

from oprack.op import InferShapeContext, Input, OpDef, Output, empty_grad
from oprack.op.sbp import unary


class BitwiseNot(OpDef, type="bitwise_not"):
    r"""$$Out_i = \neg X_i$$ bit by bit: -X - 1 of signed integers, the logical op of bools."""

    X = Input("Tensor of integers or bools, of any shape.")
    Out = Output("dtype, shape and LoD of X.")
    inplace = {"X": "Out"}
    make_grad = empty_grad
    sbp = unary

    def infer_shape(ctx: InferShapeContext) -> None:
        ctx.set_dim("Out", ctx.dim("X"))
        ctx.share_lod("X", "Out")
