"""Definitions of fake quantization: floats that hold what integers would."""

from __future__ import annotations

from typing import Any, ClassVar

from oprack.op import (
    REQUIRED,
    Attr,
    ForwardOp,
    GradOp,
    GradOpDef,
    InferShapeContext,
    Input,
    OpDef,
    OpVersion,
    Output,
    dtype_of,
    empty_grad,
)
from oprack.op.families import like
from oprack.types import AttrType

from oprack_quantization.ops._attrs import BIT_LENGTH, IS_TEST, MOVING_RATE, ROUND_TYPE
from oprack_quantization.ops._rules import (
    channels,
    like_x,
    moving_average,
    out_and_channel_scales,
    out_and_scale,
    straight_through,
)

# Slots and rules of fake quantization.
X = Input("Tensor of any shape.")

OUT = Output("Shape and LoD of X: integers B X / scale, as floats.")

RESTORED = Output("Shape and LoD of X: what the integers stand for.")

SCALE = Output("[1]: the greatest absolute value of X.", stop_gradient=True)


class AbsMax(OpDef):
    """Fake quantization by the greatest absolute value of this step."""

    X = X
    Out = OUT
    OutScale = SCALE
    bit_length = BIT_LENGTH
    round_type = ROUND_TYPE
    infer_shape = out_and_scale
    make_grad: ClassVar[Any] = empty_grad  # some members of the family have a gradient


class MovingAverage(OpDef):
    """Fake quantization by a moving average of the greatest absolute value."""

    X = X
    InScale = Input("[1]: the scale to use with `is_test`.")
    InAccum = Input("[1]: the sum so far.", dispensable=True)
    InState = Input("[1]: the weight of the sum so far.", dispensable=True)
    Out = OUT
    OutScale = Output("[1]: the scale that was used.", stop_gradient=True)
    OutState = Output("[1]: moving_rate InState + 1.", dispensable=True, stop_gradient=True)
    OutAccum = Output("[1]: moving_rate InAccum + max |X|.", dispensable=True, stop_gradient=True)
    moving_rate = MOVING_RATE
    bit_length = BIT_LENGTH
    is_test = IS_TEST
    round_type = ROUND_TYPE
    make_grad: ClassVar[Any] = empty_grad  # some members of the family have a gradient

    def infer_shape(ctx: InferShapeContext) -> None:
        like(ctx, [("Out", "X")])
        moving_average(ctx)


class FakeChannelWiseDequantizeMaxAbs(OpDef, type="fake_channel_wise_dequantize_max_abs"):
    r"""$$Out_c = X_c \cdot Scales[0]_c / B_0 \quad\text{or}\quad X_c \cdot Scales[0]_c\,Scales[1] / (B_0 B_1)$$

    with $B_i = 2^{quant\_bits_i - 1} - 1$. Channels lie along `quant_axis`; with two scales, those of the weight and
    of the input of a product, along axis `x_num_col_dims`.
    """

    X = Input("Tensor of rank 1 or more: integers, as floats.")
    Scales = Input("One or two: [C], and [1].", duplicable=True)
    Out = Output("Shape and LoD of X.")
    quant_bits = Attr([8], "Bits of the integers, one number for each of Scales.")
    quant_axis = Attr(0, "The axis of the channels: 0 or 1.").in_set({0, 1})
    x_num_col_dims = Attr(1, "With two scales, the axis of the channels.").check(lambda v: v > 0, "an axis above 0")
    make_grad = empty_grad
    versions = (
        OpVersion("fake_channel_wise_dequantize_max_abs")
        .checkpoint("Channels along another axis.", ("new_attr", "quant_axis", 0))
        .checkpoint("Channels of a product.", ("new_attr", "x_num_col_dims", 1))
    )

    def infer_shape(ctx: InferShapeContext) -> None:
        dims, count, bits = ctx.dim("X"), ctx.input_count("Scales"), ctx.attr("quant_bits")
        ctx.require(count in (1, 2), f"{count} tensors are given as Scales; expected one, or two")
        ctx.require(
            len(bits) >= count,
            f"quant_bits is {list(bits)}; expected a number for each of the {count} tensors of Scales",
        )
        if count == 1:
            size = channels(ctx)
        else:
            axis = ctx.axis("X", "x_num_col_dims")
            size = dims[axis]
            ctx.require_dims("Scales", (1,), 1, why="one number")
        ctx.require_dims("Scales", (size,), why=f"the channels of X {list(dims)}")
        like(ctx, [("Out", "X")])


class FakeChannelWiseQuantizeAbsMax(OpDef, type="fake_channel_wise_quantize_abs_max"):
    r"""$$OutScale_c = \max |X_c|,\quad Out_c = \operatorname{round}(B X_c / OutScale_c)$$"""

    X = X
    Out = OUT
    OutScale = Output("[C]: the greatest absolute value of each channel.")
    quant_axis = Attr(0, "The axis of the channels: 0 or 1.").in_set({0, 1})
    bit_length = BIT_LENGTH
    is_test = Attr(False, "No difference: the scales follow from X.")
    round_type = ROUND_TYPE
    infer_shape = out_and_channel_scales
    make_grad = empty_grad
    versions = OpVersion("fake_channel_wise_quantize_abs_max").checkpoint(
        "Channels along another axis.", ("new_attr", "quant_axis", 0)
    )


class FakeChannelWiseQuantizeDequantizeAbsMax(OpDef, type="fake_channel_wise_quantize_dequantize_abs_max"):
    r"""$$OutScale_c = \max |X_c|,\quad Out_c = \operatorname{round}(B X_c / OutScale_c) \cdot OutScale_c / B$$"""

    X = X
    Out = RESTORED
    OutScale = Output("[C]: the greatest absolute value of each channel.", stop_gradient=True)
    quant_axis = Attr(0, "The axis of the channels: 0 or 1.").in_set({0, 1})
    bit_length = BIT_LENGTH
    round_type = ROUND_TYPE
    infer_shape = out_and_channel_scales
    make_grad = straight_through


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


class FakeQuantizeAbsMax(AbsMax, type="fake_quantize_abs_max"):
    r"""$$OutScale = \max |X|,\quad Out = \operatorname{round}(B X / OutScale)$$"""


class FakeQuantizeDequantizeAbsMax(AbsMax, type="fake_quantize_dequantize_abs_max"):
    r"""$$OutScale = \max |X|,\quad Out = \operatorname{round}(B X / OutScale) \cdot OutScale / B$$"""

    Out = RESTORED
    make_grad = straight_through


class FakeQuantizeDequantizeMovingAverageAbsMax(MovingAverage, type="fake_quantize_dequantize_moving_average_abs_max"):
    r"""$$OutScale = OutAccum / OutState,\quad Out = \operatorname{round}(B X / OutScale) \cdot OutScale / B$$

    With `is_test` InScale takes the place of OutScale.
    """

    Out = RESTORED
    make_grad = straight_through


class FakeQuantizeMovingAverageAbsMax(MovingAverage, type="fake_quantize_moving_average_abs_max"):
    r"""$$OutScale = OutAccum / OutState,\quad Out = \operatorname{round}(B X / OutScale)$$

    With `is_test` InScale takes the place of OutScale.
    """


class FakeQuantizeRangeAbsMax(OpDef, type="fake_quantize_range_abs_max"):
    r"""$$OutScale = \max(InScale, \max |X|),\quad Out = \operatorname{round}(B X / OutScale)$$

    With `is_test` the scale is InScale. No input holds the scales of earlier steps, so that the greatest one of all
    steps counts, also when it is older than `window_size` steps.
    """

    X = X
    InScale = Input("[1]: the scale so far.")
    Iter = Input("int64 [1]: number of this step.", dispensable=True)
    Out = OUT
    OutScale = Output("[1]: the scale that was used.")
    OutScales = Output("[window_size]: max |X| at place Iter % window_size, zeros elsewhere.", dispensable=True)
    window_size = Attr(10000, "Number of steps.").greater_than(0)
    bit_length = BIT_LENGTH
    is_test = IS_TEST
    round_type = ROUND_TYPE
    infer_var_type = like_x
    expected_kernel_type = dtype_of("X")
    make_grad = empty_grad

    def infer_shape(ctx: InferShapeContext) -> None:
        like(ctx, [("Out", "X")])
        ctx.require_dims("InScale", (1,), why="one number")
        ctx.set_dim("OutScale", (1,))
        ctx.set_dim("OutScales", (ctx.attr("window_size"),))


class MovingAverageAbsMaxScale(OpDef, type="moving_average_abs_max_scale"):
    r"""$$OutAccum = r\,InAccum + \max |X|,\quad OutState = r\,InState + 1,\quad OutScale = OutAccum / OutState$$

    with $r$ = moving_rate; Out is X.
    """

    X = X
    InAccum = Input("[1]: the sum so far.", dispensable=True)
    InState = Input("[1]: the weight of the sum so far.", dispensable=True)
    Out = Output("X.", dispensable=True)
    OutScale = Output(
        "[1]: the average; what InAccum and InState say with `is_test`, or 0 without them.", stop_gradient=True
    )
    OutState = Output("[1]: the new weight.", dispensable=True, stop_gradient=True)
    OutAccum = Output("[1]: the new sum.", dispensable=True, stop_gradient=True)
    moving_rate = MOVING_RATE
    is_test = IS_TEST
    make_grad = straight_through
    versions = (
        OpVersion("moving_average_abs_max_scale")
        .checkpoint("Out was taken out.", ("modify_output", "Out", ""))
        .checkpoint("Out is back.", ("new_output", "Out", ""))
    )

    def infer_shape(ctx: InferShapeContext) -> None:
        like(ctx, [("Out", "X")])
        moving_average(ctx)


# stright_throuth_estimator_grad, Paddle's name for the gradient of all fake quantization.
class StraightThroughEstimatorGrad(GradOpDef, type="stright_throuth_estimator_grad"):
    r"""$$X@GRAD = Out@GRAD$$

    Rounding has the slope 0 nearly everywhere; for training it counts as the identity (Bengio, Léonard and Courville,
    "Estimating or propagating gradients through stochastic neurons", 2013).
    """

    Out_grad = Input("Gradient of what was quantized and restored.")
    X_grad = Output("The same.")
    inplace = {"Out@GRAD": "X@GRAD"}

    def infer_shape(ctx: InferShapeContext) -> None:
        like(ctx, [("X@GRAD", "Out@GRAD")])

    def make_grad(fwd: ForwardOp) -> GradOp:
        slots = {"Out@GRAD": fwd.output_grad("X@GRAD"), "X@GRAD": fwd.input_grad("Out@GRAD")}
        return GradOp("stright_throuth_estimator_grad", slots=slots)
