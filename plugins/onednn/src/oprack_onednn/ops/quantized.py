"""onednn_quantized_conv2d and onednn_quantized_matmul: all of the ops but their kernels.

A step is the number that the integer 1 stands for. What goes in is a multiple of its step, or a float32 that is rounded
to one; sums are 32 bits wide, and bias, post-ops and whatever is not an integer are float32.
"""

from __future__ import annotations

from oprack import op
from oprack.op import Attr, InferShapeContext, InferVarTypeContext, dtype_of
from oprack_nn.ops.with_post_ops import Convolution, Product

LEAST, GREATEST = -128, 127
"""The integers that a factor or a result is cut to."""


_STEPS = op.Input("float32, one for each channel of the result: steps of the weights.")
_INPUT_STEP = Attr(1.0, "The step of the input.").greater_than(0.0)
_OUTPUT_STEP = Attr(0.0, "The step of the result, which is int8 then; 0: the result is float32.").at_least(0.0)


def _result_dtype(ctx: InferVarTypeContext, slot: str) -> None:
    ctx.set_dtype(slot, "int8" if ctx.attrs["output_step"] else ctx.dtype("FilterStep"))


class OneDNNQuantizedConv2D(Convolution, type="onednn_quantized_conv2d"):
    r"""$$Output = q(p_n(... p_1(conv2d(s\,round(Input / s), Filter \cdot FilterStep) + Bias)), t)$$

    s is input_step, p are the post-ops, t is output_step, and $q(y, t)$ is $round(y / t)$ as int8, or y where t is 0.
    Both roundings cut to [-128, 127]. An int8 Input has been divided and rounded already. Made by passes.
    """

    Filter = op.Input("int8 weights [K, C / groups, kh, kw]: multiples of FilterStep [K].")
    FilterStep = _STEPS
    input_step = _INPUT_STEP
    output_step = _OUTPUT_STEP
    expected_kernel_type = dtype_of("FilterStep")

    def infer_shape(ctx: InferShapeContext) -> None:
        Convolution.infer_shape(ctx)
        ctx.require_dims("FilterStep", [ctx.dim("Filter")[0]])

    def infer_var_type(ctx: InferVarTypeContext) -> None:
        _result_dtype(ctx, "Output")


class OneDNNQuantizedMatmul(Product, type="onednn_quantized_matmul"):
    r"""$$Out = q(p_n(... p_1(s\,round(X / s) (Y \cdot FilterStep) + Bias)), t)$$ where s is input_step.

    p are the post-ops, t is output_step, and q rounds as that of onednn_quantized_conv2d. Made by passes.
    """

    Y = op.Input("int8 weights [K, N]: multiples of FilterStep [N].")
    FilterStep = _STEPS
    input_step = _INPUT_STEP
    output_step = _OUTPUT_STEP
    expected_kernel_type = dtype_of("FilterStep")

    def infer_shape(ctx: InferShapeContext) -> None:
        Product.infer_shape(ctx)
        ctx.require_dims("FilterStep", [ctx.dim("Y")[1]])

    def infer_var_type(ctx: InferVarTypeContext) -> None:
        _result_dtype(ctx, "Out")
