"""quantize_linear: all of the op but its kernels."""

from __future__ import annotations

from oprack.op import InferShapeContext, dtype_of

from oprack_quantization.ops.linear._family import Linear


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
