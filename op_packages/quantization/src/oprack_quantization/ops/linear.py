"""Definitions of quantization by given scales, and of the way back."""

from __future__ import annotations

from oprack.op import (
    REQUIRED,
    Attr,
    IdentityContext,
    InferShapeContext,
    InferVarTypeContext,
    Input,
    OpDef,
    Output,
    dtype_of,
    empty_grad,
)
from oprack.op.families import like
from oprack.types import AttrType

from oprack_quantization.ops._attrs import BIT_LENGTH
from oprack_quantization.ops._rules import channels


# Slots of quantization by given scales.
class Linear(OpDef):
    """Quantization by a scale for the whole tensor, or one for each channel."""

    X = Input("Tensor of any shape.")
    Scale = Input("[C], or [1] with `quant_axis` -1.")
    ZeroPoint = Input("Not read: integers are symmetric.")
    InAccum = Input("[1]: the sum of scales so far, for training.", dispensable=True, extra=True)
    InState = Input("[1]: the weight of that sum.", dispensable=True, extra=True)
    Y = Output("Shape and LoD of X.")
    OutState = Output("[1]: moving_rate InState + 1.", dispensable=True, extra=True)
    OutAccum = Output("[1]: moving_rate InAccum + max |X|.", dispensable=True, extra=True)
    OutScale = Output("Shape of Scale: the scales that were used.", dispensable=True, extra=True)
    quant_axis = Attr(0, "The axis of the channels; -1: one scale for all.").check(lambda v: v >= -1, "an axis, or -1")
    bit_length = BIT_LENGTH
    round_type = Attr(
        0, "0: ties to even, then cut to [-B - 1, B]; 1: cut to [-B, B], then ties away from zero."
    ).in_set({0, 1})
    is_test = Attr(True, "Use Scale, and do not measure it.")
    only_observer = Attr(False, "Give back X; in training the scale is measured all the same.")
    moving_rate = Attr(0.9, "How much of the average each step keeps.", extra=True)
    make_grad = empty_grad

    def infer_shape(ctx: InferShapeContext) -> None:
        size = 1 if ctx.attr("quant_axis") < 0 else channels(ctx)
        ctx.require_dims("Scale", (size,), why=f"with quant_axis {ctx.attr('quant_axis')} and X {list(ctx.dim('X'))}")
        like(ctx, [("Y", "X")])
        for slot in ("OutState", "OutAccum"):
            ctx.set_dim(slot, (1,))
        ctx.set_dim("OutScale", (size,))

    def identity(ctx: IdentityContext) -> bool:
        # tools of Paddle put such observers behind every layer, where they would keep passes from seeing it
        return ctx.attr("only_observer") and ctx.attr("is_test") and ctx.dtype("X") == ctx.dtype("Scale")

    def infer_var_type(ctx: InferVarTypeContext) -> None:
        for slot in ("Y", "OutState", "OutAccum", "OutScale"):
            if ctx.has_output(slot):
                ctx.set_dtype(slot, ctx.dtype("Scale"))


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


class DequantizeLinear(Linear, type="dequantize_linear"):
    r"""$$Y_c = X_c \cdot Scale_c / B,\quad B = 2^{bit\_length - 1} - 1$$"""

    expected_kernel_type = dtype_of("X")


class QuantizeLinear(Linear, type="quantize_linear"):
    r"""$$Y_c = \operatorname{round}(B X_c / s_c),\quad B = 2^{bit\_length - 1} - 1$$

    $s$ is Scale with `is_test`. In training it is $\max |X_c|$ for each channel, or one moving average for the whole
    tensor, as moving_average_abs_max_scale has it.
    """

    expected_kernel_type = dtype_of("Scale")

    def infer_shape(ctx: InferShapeContext) -> None:
        Linear.infer_shape(ctx)
        averages = not ctx.attr("is_test") and ctx.attr("quant_axis") < 0
        ctx.require(
            not averages or (ctx.has_input("InState") and ctx.has_input("InAccum")),
            "is_test is false, quant_axis is -1, and InState or InAccum is absent; expected both, [1] each, since the "
            "moving average goes on from them",
        )
