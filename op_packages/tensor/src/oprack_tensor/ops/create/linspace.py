"""linspace: all of the op but its kernel."""

from __future__ import annotations

from oprack.op import (
    REQUIRED,
    Attr,
    InferShapeContext,
    InferVarTypeContext,
    Input,
    OpDef,
    OpVersion,
    Output,
    dtype_of_attr,
    empty_grad,
)
from oprack.types import AttrType


class Linspace(OpDef, type="linspace"):
    r"""$$Out_i = Start + i \cdot (Stop - Start) / (Num - 1)$$"""

    Start = Input("One-element tensor, the first value.")
    Stop = Input("One-element tensor, the last value.")
    Num = Input("One-element integer tensor, the number of values.")
    Out = Output("[Num]")
    dtype = Attr(REQUIRED, "dtype of Out.", type=AttrType.INT)
    expected_kernel_type = dtype_of_attr("dtype")
    make_grad = empty_grad
    versions = OpVersion("linspace").checkpoint("The dtype may differ from that of Start.", ("new_attr", "dtype", 5))

    def infer_shape(ctx: InferShapeContext) -> None:
        num = ctx.scalar("Num")
        size = -1 if num is None else int(num)
        ctx.require_sizes("Num", [size])
        ctx.set_dim("Out", (size,))

    def infer_var_type(ctx: InferVarTypeContext) -> None:
        ctx.set_dtype("Out", ctx.attr("dtype"))
