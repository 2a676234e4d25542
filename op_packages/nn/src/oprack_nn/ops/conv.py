"""conv2d, depthwise_conv2d, conv3d and their gradients: all of the ops but their kernels."""

from __future__ import annotations

from oprack import op
from oprack.op import Attr, GradOpDef, OpVersion
from oprack.op.windows import conv_out, resolve_pads

from oprack_nn.ops._conv import (
    ConvExtras,
    DepthwiseExtras,
    FusedConvExtras,
    algorithm_attr,
    join_dims,
    layout_attr,
    paddings_attr,
    positive,
    resolve_dilations,
    split_dims,
)

_NOTE = "New attribute use_addto: gradients are added in place."


def _output_dims(ctx):
    rank = len(ctx.attr("strides"))
    dims = ctx.require_rank("Input", rank + 2)
    k, c_per_group, *ksize = ctx.require_rank("Filter", rank + 2)
    n, c, spatial = split_dims(dims, ctx.attr("data_format"))
    groups = ctx.attr("groups")
    ctx.require(
        c < 0 or c_per_group < 0 or c == c_per_group * groups,
        f"Input {list(dims)} has {c} channels ({ctx.attr('data_format')}), but Filter {list(ctx.dim('Filter'))} takes "
        f"{c_per_group} x groups {groups} = {c_per_group * groups}; check Filter, groups and data_format",
    )
    ctx.require(
        k < 0 or k % groups == 0,
        f"Filter {list(ctx.dim('Filter'))} makes {k} channels, which groups {groups} does not divide",
    )
    pads = resolve_pads(ctx.attr("padding_algorithm"), ctx.attr("paddings"), spatial, ksize, ctx.attr("strides"))
    dilations = resolve_dilations(ctx.attr("padding_algorithm"), ctx.attr("dilations"))
    out = [conv_out(x, *rest) for x, *rest in zip(spatial, ksize, pads, ctx.attr("strides"), dilations, strict=True)]
    ctx.require(
        all(o == -1 or o > 0 for o in out),
        f"the kernel {ksize} with dilations {dilations} is larger than the padded Input {list(spatial)} + {pads}; "
        "raise paddings or feed a larger Input",
    )
    return join_dims(n, k, out, ctx.attr("data_format"))


def _infer_shape(ctx):
    ctx.set_dim("Output", _output_dims(ctx))


class _ConvGrad(GradOpDef, reads="Input Filter", grads_of="Input? Filter?", dims={"Output@GRAD": _output_dims}):
    """Gradient of a convolution."""


class _ConvDoubleGrad(
    GradOpDef,
    reads="Input Filter Output@GRAD Input@GRAD@GRAD? Filter@GRAD@GRAD?",
    grads_of="Input? Filter? Output@GRAD?",
    dims={"Output@GRAD": _output_dims},
    names={"Output@GRAD": "grad_out", "Filter@GRAD": "grad_filter", "Input@GRAD": "grad_input"},
):
    """Gradient of the gradient of a convolution."""


class Conv2D(ConvExtras, type="conv2d"):
    r"""$$Output_{n,k,y,x} = \sum_{c,i,j} Input_{n,c,y s_h + i d_h - p_t,x s_w + j d_w - p_l} Filter_{k,c,i,j}$$

    with c over the channels of k's group; taps outside of Input are zero.
    """

    Input = op.Input("[N, C, H, W], or [N, H, W, C] with data_format NHWC.")
    Filter = op.Input("[K, C / groups, kh, kw] in either layout.")
    Output = op.Output("[N, K, H', W'] in the layout of Input.")
    strides = positive([1, 1], "Step along H and W.")
    paddings = paddings_attr(2)
    padding_algorithm = algorithm_attr()
    dilations = positive([1, 1], "Distance of kernel taps along H and W.")
    groups = Attr(1, "Groups of channels that see each other.").at_least(1)
    data_format = layout_attr("NCHW")
    versions = OpVersion("conv2d").checkpoint(_NOTE, ("new_attr", "use_addto", False))
    infer_shape = _infer_shape


class Conv2DGrad(_ConvGrad, of=Conv2D):
    """Input@GRAD is the transposed convolution of Output@GRAD; Filter@GRAD correlates Input with Output@GRAD."""


class Conv2DGradGrad(_ConvDoubleGrad, of=Conv2DGrad):
    """Gradient of conv2d_grad, which is linear in each of Input, Filter and Output@GRAD."""


class DepthwiseConv2D(DepthwiseExtras, type="depthwise_conv2d"):
    """conv2d with one group per input channel; each channel makes K / C output channels."""

    Input = op.Input("[N, C, H, W], or [N, H, W, C] with data_format NHWC.")
    Filter = op.Input("[K, 1, kh, kw] in either layout.")
    Output = op.Output("[N, K, H', W'] in the layout of Input.")
    strides = positive([1, 1], "Step along H and W.")
    paddings = paddings_attr(2)
    padding_algorithm = algorithm_attr()
    groups = Attr(1, "Number of input channels.").at_least(1)
    dilations = positive([1, 1], "Distance of kernel taps along H and W.")
    data_format = layout_attr("NCHW")
    versions = OpVersion("depthwise_conv2d").checkpoint(_NOTE, ("new_attr", "use_addto", False))
    infer_shape = _infer_shape


class DepthwiseConv2DGrad(_ConvGrad, of=DepthwiseConv2D):
    """As conv2d_grad, per channel."""


class DepthwiseConv2DGradGrad(_ConvDoubleGrad, of=DepthwiseConv2DGrad):
    """Gradient of depthwise_conv2d_grad."""


class Conv3D(FusedConvExtras, type="conv3d"):
    """conv2d with a third spatial dim, D."""

    Input = op.Input("[N, C, D, H, W], or [N, D, H, W, C] with data_format NDHWC.")
    Filter = op.Input("[K, C / groups, kd, kh, kw] in either layout.")
    Output = op.Output("[N, K, D', H', W'] in the layout of Input.")
    strides = positive([1, 1, 1], "Step along D, H and W.")
    paddings = paddings_attr(3)
    padding_algorithm = algorithm_attr()
    groups = Attr(1, "Groups of channels that see each other.").at_least(1)
    dilations = positive([1, 1, 1], "Distance of kernel taps along D, H and W.")
    data_format = layout_attr("NCDHW")
    versions = OpVersion("conv3d").checkpoint(_NOTE, ("new_attr", "use_addto", False))
    infer_shape = _infer_shape


class Conv3DGrad(_ConvGrad, of=Conv3D):
    """As conv2d_grad, with a third spatial dim."""


class Conv3DGradGrad(_ConvDoubleGrad, of=Conv3DGrad):
    """Gradient of conv3d_grad."""
