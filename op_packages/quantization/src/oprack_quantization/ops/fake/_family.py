"""Slots and rules of fake quantization."""

from __future__ import annotations

from oprack.op import InferShapeContext, Input, OpDef, Output, empty_grad
from oprack.op.families import like

from oprack_quantization.ops._attrs import BIT_LENGTH, IS_TEST, MOVING_RATE, ROUND_TYPE
from oprack_quantization.ops._rules import moving_average, out_and_scale

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
    make_grad = empty_grad


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
    make_grad = empty_grad

    def infer_shape(ctx: InferShapeContext) -> None:
        like(ctx, [("Out", "X")])
        moving_average(ctx)
