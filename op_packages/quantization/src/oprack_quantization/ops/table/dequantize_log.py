"""dequantize_log: all of the op but its kernels."""

from __future__ import annotations

from oprack.op import InferShapeContext, InferVarTypeContext, Input, OpDef, Output, dtype_of, empty_grad
from oprack.op.families import like


class DequantizeLog(OpDef, type="dequantize_log"):
    r"""$$Out = Dict_X \;\text{for}\; X \ge 0,\quad Out = -Dict_{X + 128} \;\text{for}\; X < 0$$"""

    X = Input("int8 tensor of any shape.")
    Dict = Input("float32 [128]: the numbers that X stands for.")
    Out = Output("float32, shape and LoD of X.")
    expected_kernel_type = dtype_of("X")
    make_grad = empty_grad

    def infer_shape(ctx: InferShapeContext) -> None:
        ctx.require_dims("Dict", (128,), why="one number for each int8 that is not negative")
        like(ctx, [("Out", "X")])

    def infer_var_type(ctx: InferVarTypeContext) -> None:
        ctx.set_dtype("Out", ctx.dtype("Dict"))
