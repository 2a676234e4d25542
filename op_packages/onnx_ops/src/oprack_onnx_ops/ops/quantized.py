"""Tensors of small integers, with a scale and a zero point."""

from __future__ import annotations

from oprack.op import Attr, InferShapeContext, InferVarTypeContext, Input, Output, dtype_of
from oprack.types import dtype_name

from oprack_onnx_ops.ops._common import OnnxOp, dtypes, same_shape
from oprack_onnx_ops.ops.windows import AUTO_PAD, DILATIONS, PADS, STRIDES, window_sizes

AXIS = Attr(1, "The axis along which scales and zero points change, if they do.")
BLOCK_SIZE = Attr(0, "How many elements along the axis share a scale; 0: there are no blocks.")


class OnnxQuantizeLinear(OnnxOp, type="onnx_quantize_linear"):
    r"""$$y = \operatorname{saturate}(\operatorname{rint}(x / scale) + zero)$$"""

    x = Input("Tensor of any shape.")
    y_scale = Input("One number, one for each slice along the axis, or one for each block.")
    y_zero_point = Input("Shape of y_scale; 0 where it is absent. Its dtype is that of y.", dispensable=True)
    y = Output("Shape of x.")
    axis = AXIS
    block_size = BLOCK_SIZE
    output_dtype = Attr(20, "The dtype where there is no y_zero_point.")
    saturate = Attr(True, "Of 8-bit floats: what is too large becomes the largest.")
    expected_kernel_type = dtype_of("x")

    def infer_shape(ctx: InferShapeContext) -> None:
        same_shape(ctx, "x", "y")

    def infer_var_type(ctx: InferVarTypeContext) -> None:
        given = ctx.has_input("y_zero_point")
        dtypes(ctx, y=ctx.dtype("y_zero_point") if given else dtype_name(ctx.attr("output_dtype")))


class OnnxDequantizeLinear(OnnxOp, type="onnx_dequantize_linear"):
    r"""$$y = (x - zero) \cdot scale$$"""

    x = Input("Integers of any shape.")
    x_scale = Input("One number, one for each slice along the axis, or one for each block.")
    x_zero_point = Input("Shape of x_scale, dtype of x; 0 where it is absent.", dispensable=True)
    y = Output("Shape of x, dtype of x_scale.")
    axis = AXIS
    block_size = BLOCK_SIZE
    expected_kernel_type = dtype_of("x_scale")

    def infer_shape(ctx: InferShapeContext) -> None:
        same_shape(ctx, "x", "y")

    def infer_var_type(ctx: InferVarTypeContext) -> None:
        dtypes(ctx, y=ctx.dtype("x_scale"))


class OnnxMatMulInteger(OnnxOp, type="onnx_matmul_integer"):
    r"""$$Y = (A - a_0) (B - b_0)$$ in 32 bits."""

    A = Input("int8 or uint8 [..., m, k].")
    B = Input("int8 or uint8 [..., k, n].")
    a_zero_point = Input("One number, or one for each row; 0 where it is absent.", dispensable=True)
    b_zero_point = Input("One number, or one for each column; 0 where it is absent.", dispensable=True)
    Y = Output("int32 [..., m, n].")
    expected_kernel_type = dtype_of("A")

    def infer_var_type(ctx: InferVarTypeContext) -> None:
        dtypes(ctx, Y="int32")


class OnnxQLinearMatMul(OnnxOp, type="onnx_qlinear_matmul"):
    r"""$$y = \operatorname{saturate}(\operatorname{rint}((a - a_0)(b - b_0) \cdot a_s b_s / y_s) + y_0)$$"""

    a = Input("int8 or uint8 [..., m, k].")
    a_scale = Input("One number, or one for each row.")
    a_zero_point = Input("Shape of a_scale.")
    b = Input("int8 or uint8 [..., k, n].")
    b_scale = Input("One number, or one for each column.")
    b_zero_point = Input("Shape of b_scale.")
    y_scale = Input("One number, or one for each row.")
    y_zero_point = Input("Shape of y_scale. Its dtype is that of y.")
    y = Output("[..., m, n].")
    expected_kernel_type = dtype_of("a")

    def infer_var_type(ctx: InferVarTypeContext) -> None:
        dtypes(ctx, y=ctx.dtype("y_zero_point"))


class _Convolution(OnnxOp):
    """What convolutions of integers share: x, w and y."""

    group = Attr(1, "Groups of channels.")
    strides = STRIDES
    dilations = DILATIONS
    pads = PADS
    auto_pad = AUTO_PAD
    expected_kernel_type = dtype_of("x")

    def infer_shape(ctx: InferShapeContext) -> None:
        dims, filters = ctx.dim("x"), ctx.dim("w")
        if dims and filters:
            ctx.set_dim("y", [dims[0], filters[0], *window_sizes(ctx, dims, filters[2:])])


class OnnxConvInteger(_Convolution, type="onnx_conv_integer"):
    r"""$$y = (x - x_0) * (w - w_0)$$ in 32 bits."""

    x = Input("int8 or uint8 [batch, channels, *image].")
    w = Input("int8 or uint8 [filters, channels / group, *kernel].")
    x_zero_point = Input("One number; 0 where it is absent.", dispensable=True)
    w_zero_point = Input("One number, or one for each filter; 0 where it is absent.", dispensable=True)
    y = Output("int32 [batch, filters, *windows].")

    def infer_var_type(ctx: InferVarTypeContext) -> None:
        dtypes(ctx, y="int32")


class OnnxQLinearConv(_Convolution, type="onnx_qlinear_conv"):
    r"""$$y = \operatorname{saturate}(\operatorname{rint}(((x - x_0) * (w - w_0) + B) \cdot x_s w_s / y_s) + y_0)$$"""

    x = Input("int8 or uint8 [batch, channels, *image].")
    x_scale = Input("One number.")
    x_zero_point = Input("One number.")
    w = Input("int8 or uint8 [filters, channels / group, *kernel].")
    w_scale = Input("One number, or one for each filter.")
    w_zero_point = Input("Shape of w_scale.")
    y_scale = Input("One number.")
    y_zero_point = Input("One number. Its dtype is that of y.")
    B = Input("int32 [filters], of scale x_scale * w_scale.", dispensable=True)
    y = Output("[batch, filters, *windows].")

    def infer_var_type(ctx: InferVarTypeContext) -> None:
        dtypes(ctx, y=ctx.dtype("y_zero_point"))
