"""conv2d_transpose, depthwise_conv2d_transpose, conv3d_transpose, their gradients: all of the ops but their kernels."""

from __future__ import annotations

from oprack import op
from oprack.op import Attr, GradOpDef, OpVersion
from oprack.op.windows import resolve_pads
from oprack.types import AttrType

from oprack_nn.ops._conv import (
    CudnnExtras,
    MkldnnFuseExtras,
    algorithm_attr,
    conv_transpose_out,
    join_dims,
    layout_attr,
    paddings_attr,
    positive,
    resolve_dilations,
    split_dims,
)

_PADDING_NOTE = "New attribute output_padding: extra rows and columns at the end."


def _output_dims(ctx):
    strides = ctx.attr("strides")
    rank = len(strides)
    dims = ctx.require_rank("Input", rank + 2)
    c_in, k_per_group, *ksize = ctx.require_rank("Filter", rank + 2)
    n, c, spatial = split_dims(dims, ctx.attr("data_format"))
    ctx.require(
        c < 0 or c_in < 0 or c == c_in,
        f"Input {list(dims)} has {c} channels ({ctx.attr('data_format')}), but Filter {list(ctx.dim('Filter'))} takes "
        f"{c_in}; check Filter and data_format",
    )
    pads = resolve_pads(ctx.attr("padding_algorithm"), ctx.attr("paddings"), spatial, ksize, strides)
    dilations = resolve_dilations(ctx.attr("padding_algorithm"), ctx.attr("dilations"))
    out = [conv_transpose_out(x, *rest) for x, *rest in zip(spatial, ksize, pads, strides, dilations, strict=True)]
    size, extra = ctx.attr("output_size"), ctx.attr("output_padding")
    if size:
        # at build time the size may be given as variables, whose values are not known yet
        size = [s if isinstance(s, int) else -1 for s in size] if not isinstance(size, str) else [-1] * rank
        _check_length(ctx, "output_size", size, rank)
        for given, least, step in zip(size, out, strides, strict=True):
            ctx.require(
                least < 0 or given < 0 or least <= given < least + step,
                f"output_size is {list(size)}; expected {least} <= {given} < {least + step} there, since several sizes "
                "within one stride share an Input shape",
            )
        out = list(size)
    elif extra:
        _check_length(ctx, "output_padding", extra, rank)
        for given, step, dilation in zip(extra, strides, dilations, strict=True):
            ctx.require(
                0 <= given < max(step, dilation),
                f"output_padding is {list(extra)}; expected less than stride {step} or dilation {dilation}",
            )
        out = [o if o < 0 else o + e for o, e in zip(out, extra, strict=True)]
    channels = k_per_group * ctx.attr("groups") if k_per_group > 0 else -1
    return join_dims(n, channels, out, ctx.attr("data_format"))


def _infer_shape(ctx):
    ctx.set_dim("Output", _output_dims(ctx))


def _check_length(ctx, name, value, rank):
    ctx.require(len(value) == rank, f"{name} is {list(value)}; expected {rank} numbers, one per spatial dim")


class _TransposeGrad(GradOpDef, reads="Input Filter", grads_of="Input? Filter?", dims={"Output@GRAD": _output_dims}):
    """Gradient of a transposed convolution."""


class _Attrs2D(MkldnnFuseExtras):
    strides = positive([1, 1], "Distance of the inputs along H and W of the output.")
    paddings = paddings_attr(2)
    output_padding = Attr([], "Extra rows and columns at the end; empty for none.", type=AttrType.INTS)
    output_size = Attr([], "H and W of the output; empty for the smallest.", type=AttrType.INTS, support_tensor=True)
    padding_algorithm = algorithm_attr()
    groups = Attr(1, "Groups of channels that see each other.").at_least(1)
    dilations = positive([1, 1], "Distance of kernel taps along H and W.")
    data_format = layout_attr("NCHW")


class Conv2DTranspose(_Attrs2D, type="conv2d_transpose"):
    r"""$$Output_{n,k,y s_h + i d_h - p_t,x s_w + j d_w - p_l} \mathrel{+}= Input_{n,c,y,x} Filter_{c,k,i,j}$$

    The adjoint of conv2d with the same attributes; (H - 1) s - p_t - p_b + d (kh - 1) + 1 rows unless output_size or
    output_padding asks for more. Bias, one number per channel, is added.
    """

    Input = op.Input("[N, C, H, W], or [N, H, W, C] with data_format NHWC.")
    Filter = op.Input("[C, K / groups, kh, kw] in either layout.")
    Bias = op.Input("[K].", dispensable=True, extra=True)
    Output = op.Output("[N, K, H', W'] in the layout of Input.")
    versions = (
        OpVersion("conv2d_transpose")
        .checkpoint(_PADDING_NOTE, ("new_attr", "output_padding", []))
        .checkpoint(
            "New attributes force_fp32_output and mkldnn_data_type for oneDNN's bfloat16 kernel.",
            ("new_attr", "force_fp32_output", False),
            ("new_attr", "mkldnn_data_type", "float32"),
        )
    )
    infer_shape = _infer_shape


class DepthwiseConv2DTranspose(_Attrs2D, type="depthwise_conv2d_transpose"):
    """conv2d_transpose with one group per input channel."""

    Input = op.Input("[N, C, H, W], or [N, H, W, C] with data_format NHWC.")
    Filter = op.Input("[C, K / groups, kh, kw] in either layout.")
    Bias = op.Input("[K].", dispensable=True, extra=True)
    Output = op.Output("[N, K, H', W'] in the layout of Input.")
    use_cudnn = Attr(False, "Paddle: prefer the cuDNN kernel.", extra=True)
    versions = OpVersion("depthwise_conv2d_transpose").checkpoint(_PADDING_NOTE, ("new_attr", "output_padding", []))
    infer_shape = _infer_shape


class Conv3DTranspose(CudnnExtras, type="conv3d_transpose"):
    """conv2d_transpose with a third spatial dim, D."""

    Input = op.Input("[N, C, D, H, W], or [N, D, H, W, C] with data_format NDHWC.")
    Filter = op.Input("[C, K / groups, kd, kh, kw] in either layout.")
    Output = op.Output("[N, K, D', H', W'] in the layout of Input.")
    strides = positive([1, 1, 1], "Distance of the inputs along D, H and W of the output.")
    paddings = paddings_attr(3)
    output_padding = Attr([], "Extra planes, rows and columns at the end; empty for none.", type=AttrType.INTS)
    output_size = Attr([], "D, H and W of the output; empty for the smallest.", type=AttrType.INTS)
    padding_algorithm = algorithm_attr()
    groups = Attr(1, "Groups of channels that see each other.").at_least(1)
    dilations = positive([1, 1, 1], "Distance of kernel taps along D, H and W.")
    data_format = layout_attr("NCHW")
    versions = OpVersion("conv3d_transpose").checkpoint(_PADDING_NOTE, ("new_attr", "output_padding", []))
    infer_shape = _infer_shape


class Conv2DTransposeGrad(_TransposeGrad, of=Conv2DTranspose, reads="Input Filter Bias"):
    """Input@GRAD is the convolution of Output@GRAD with Filter; Filter@GRAD correlates Output@GRAD with Input."""

    Bias = op.Input("Bias of the forward op; gets no gradient.", dispensable=True)


class DepthwiseConv2DTransposeGrad(_TransposeGrad, of=DepthwiseConv2DTranspose, reads="Input Filter Bias"):
    """As conv2d_transpose_grad, per channel."""

    Bias = op.Input("Bias of the forward op; gets no gradient.", dispensable=True)


class Conv3DTransposeGrad(_TransposeGrad, of=Conv3DTranspose):
    """As conv2d_transpose_grad, with a third spatial dim."""


class Conv2DTransposeGradGrad(
    GradOpDef,
    of=Conv2DTransposeGrad,
    reads="Input Filter Output@GRAD Input@GRAD@GRAD? Filter@GRAD@GRAD?",
    grads_of="Input? Filter? Output@GRAD?",
    names={"Output@GRAD": "grad_out", "Filter@GRAD": "grad_filter", "Input@GRAD": "grad_x"},
    dims={"Output@GRAD": _output_dims},
):
    """Gradient of conv2d_transpose_grad, which is linear in each of Input, Filter and Output@GRAD."""
