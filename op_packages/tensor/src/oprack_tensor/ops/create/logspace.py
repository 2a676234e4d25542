"""logspace: all of the op but its kernel."""

from __future__ import annotations

from oprack.op import (
    REQUIRED,
    Attr,
    InferShapeContext,
    InferVarTypeContext,
    Input,
    OpDef,
    Output,
    dtype_of_attr,
    empty_grad,
)
from oprack.types import AttrType


class Logspace(OpDef, type="logspace"):
    r"""$$Out_i = Base^{Start + i (Stop - Start) / (Num - 1)}$$ of one number Start; integers are cut towards zero."""

    Start = Input("One-element tensor, the first exponent.")
    Stop = Input("One-element tensor, the last exponent.")
    Num = Input("One-element integer tensor, the number of values.")
    Base = Input("One-element tensor, the base.")
    Out = Output("[Num]")
    dtype = Attr(REQUIRED, "dtype of Out.", type=AttrType.INT)
    expected_kernel_type = dtype_of_attr("dtype")
    make_grad = empty_grad

    def infer_shape(ctx: InferShapeContext) -> None:
        num = ctx.scalar("Num")
        size = -1 if num is None else int(num)
        ctx.require_sizes("Num", [size])
        ctx.set_dim("Out", (size,))

    def infer_var_type(ctx: InferVarTypeContext) -> None:
        ctx.set_dtype("Out", ctx.attr("dtype"))
