"""fake_dequantize_max_abs: all of the op but its kernels."""

from __future__ import annotations

from oprack.op import REQUIRED, Attr, InferShapeContext, Input, OpDef, Output, empty_grad
from oprack.op.families import like
from oprack.types import AttrType


class FakeDequantizeMaxAbs(OpDef, type="fake_dequantize_max_abs"):
    r"""$$Out = X \cdot Scale / max\_range$$"""

    X = Input("Tensor of any shape: integers, as floats.")
    Scale = Input("[1].")
    Out = Output("Shape and LoD of X.")
    max_range = Attr(REQUIRED, "The integer that stands for Scale.", type=AttrType.FLOAT).check(
        lambda v: v != 0, "a value other than 0"
    )
    make_grad = empty_grad

    def infer_shape(ctx: InferShapeContext) -> None:
        ctx.require_dims("Scale", (1,), why="one number")
        like(ctx, [("Out", "X")])
