"""fake_quantize_range_abs_max: all of the op but its kernels."""

from __future__ import annotations

from oprack.op import Attr, InferShapeContext, Input, OpDef, Output, dtype_of, empty_grad
from oprack.op.families import like

from oprack_quantization.ops._attrs import BIT_LENGTH, IS_TEST, ROUND_TYPE
from oprack_quantization.ops._rules import like_x
from oprack_quantization.ops.fake import _family


class FakeQuantizeRangeAbsMax(OpDef, type="fake_quantize_range_abs_max"):
    r"""$$OutScale = \max(InScale, \max |X|),\quad Out = \operatorname{round}(B X / OutScale)$$

    With `is_test` the scale is InScale. No input holds the scales of earlier steps, so that the greatest one of all
    steps counts, also when it is older than `window_size` steps.
    """

    X = _family.X
    InScale = Input("[1]: the scale so far.")
    Iter = Input("int64 [1]: number of this step.", dispensable=True)
    Out = _family.OUT
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
