"""dequantize_abs_max: all of the op but its kernels."""

from __future__ import annotations

from oprack.op import REQUIRED, Attr, InferShapeContext, InferVarTypeContext, Input, OpDef, Output, dtype_of, empty_grad
from oprack.op.families import like
from oprack.types import AttrType


class DequantizeAbsMax(OpDef, type="dequantize_abs_max"):
    r"""$$Out = X \cdot Scale / max\_range$$"""

    X = Input("int8 or int16 tensor of any shape.")
    Scale = Input("float32 [1].")
    Out = Output("float32, shape and LoD of X.")
    max_range = Attr(REQUIRED, "The integer that stands for Scale.", type=AttrType.FLOAT).check(
        lambda v: v != 0, "a value other than 0"
    )
    expected_kernel_type = dtype_of("X")
    make_grad = empty_grad

    def infer_shape(ctx: InferShapeContext) -> None:
        ctx.require_dims("Scale", (1,), why="one number")
        like(ctx, [("Out", "X")])

    def infer_var_type(ctx: InferVarTypeContext) -> None:
        ctx.set_dtype("Out", ctx.dtype("Scale"))
