"""conv2d, depthwise_conv2d, conv3d and their gradients: all of the ops but their kernels."""

from __future__ import annotations

from oprack import op
from oprack.op import Attr, GradOp, GradOpDef, OpVersion

from oprack_nn.ops._conv import (
    ConvExtras,
    DepthwiseExtras,
    FusedConvExtras,
    algorithm_attr,
    conv_out,
    join_dims,
    layout_attr,
    paddings_attr,
    positive,
    resolve_dilations,
    resolve_pads,
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


def _make_grad(fwd):
    return GradOp(
        fwd.type + "_grad",
        Input=fwd.input("Input"),
        Filter=fwd.input("Filter"),
        Output_grad=fwd.output_grad("Output"),
        Input_grad=fwd.input_grad("Input"),
        Filter_grad=fwd.input_grad("Filter"),
        attrs=fwd.attrs,
    )


def _infer_grad_shape(ctx):
    ctx.require_dims("Output@GRAD", _output_dims(ctx), why="what the forward op gives")
    _infer_input_grads(ctx)


def _infer_input_grads(ctx):
    ctx.set_dim("Input@GRAD", ctx.dim("Input"))
    ctx.share_lod("Input", "Input@GRAD")
    ctx.set_dim("Filter@GRAD", ctx.dim("Filter"))


def _make_double_grad(fwd):
    return GradOp(
        fwd.type + "_grad",
        Input=fwd.input("Input"),
        Filter=fwd.input("Filter"),
        grad_out=fwd.input("Output@GRAD"),
        grad_input_grad=fwd.output_grad("Input@GRAD") if fwd.has_output("Input@GRAD") else None,
        grad_filter_grad=fwd.output_grad("Filter@GRAD") if fwd.has_output("Filter@GRAD") else None,
        grad_out_grad=fwd.input_grad("Output@GRAD"),
        Input_grad=fwd.input_grad("Input"),
        Filter_grad=fwd.input_grad("Filter"),
        attrs=fwd.attrs,
    )


def _infer_double_grad_shape(ctx):
    ctx.require_dims("grad_out", _output_dims(ctx), why="what the forward op gives")
    _infer_input_grads(ctx)
    ctx.set_dim("grad_out@GRAD", ctx.dim("grad_out"))


class _Conv2DAttrs(ConvExtras):
    strides = positive([1, 1], "Step along H and W.")
    paddings = paddings_attr(2)
    padding_algorithm = algorithm_attr()
    dilations = positive([1, 1], "Distance of kernel taps along H and W.")
    groups = Attr(1, "Groups of channels that see each other.").at_least(1)
    data_format = layout_attr("NCHW")


class _Depthwise2DAttrs(DepthwiseExtras):
    strides = positive([1, 1], "Step along H and W.")
    paddings = paddings_attr(2)
    padding_algorithm = algorithm_attr()
    groups = Attr(1, "Number of input channels.").at_least(1)
    dilations = positive([1, 1], "Distance of kernel taps along H and W.")
    data_format = layout_attr("NCHW")


class _Conv3DAttrs(FusedConvExtras):
    strides = positive([1, 1, 1], "Step along D, H and W.")
    paddings = paddings_attr(3)
    padding_algorithm = algorithm_attr()
    groups = Attr(1, "Groups of channels that see each other.").at_least(1)
    dilations = positive([1, 1, 1], "Distance of kernel taps along D, H and W.")
    data_format = layout_attr("NCDHW")


class Conv2D(_Conv2DAttrs, type="conv2d"):
    r"""$$Output_{n,k,y,x} = \sum_{c,i,j} Input_{n,c,y s_h + i d_h - p_t,x s_w + j d_w - p_l} Filter_{k,c,i,j}$$

    with c over the channels of k's group; taps outside of Input are zero.
    """

    Input = op.Input("[N, C, H, W], or [N, H, W, C] with data_format NHWC.")
    Filter = op.Input("[K, C / groups, kh, kw] in either layout.")
    Output = op.Output("[N, K, H', W'] in the layout of Input.")
    versions = OpVersion("conv2d").checkpoint(_NOTE, ("new_attr", "use_addto", False))
    infer_shape = _infer_shape
    make_grad = _make_grad


class DepthwiseConv2D(_Depthwise2DAttrs, type="depthwise_conv2d"):
    """conv2d with one group per input channel; each channel makes K / C output channels."""

    Input = op.Input("[N, C, H, W], or [N, H, W, C] with data_format NHWC.")
    Filter = op.Input("[K, 1, kh, kw] in either layout.")
    Output = op.Output("[N, K, H', W'] in the layout of Input.")
    versions = OpVersion("depthwise_conv2d").checkpoint(_NOTE, ("new_attr", "use_addto", False))
    infer_shape = _infer_shape
    make_grad = _make_grad


class Conv3D(_Conv3DAttrs, type="conv3d"):
    """conv2d with a third spatial dim, D."""

    Input = op.Input("[N, C, D, H, W], or [N, D, H, W, C] with data_format NDHWC.")
    Filter = op.Input("[K, C / groups, kd, kh, kw] in either layout.")
    Output = op.Output("[N, K, D', H', W'] in the layout of Input.")
    versions = OpVersion("conv3d").checkpoint(_NOTE, ("new_attr", "use_addto", False))
    infer_shape = _infer_shape
    make_grad = _make_grad


class Conv2DGrad(_Conv2DAttrs, GradOpDef, type="conv2d_grad"):
    """Input@GRAD is the transposed convolution of Output@GRAD; Filter@GRAD correlates Input with Output@GRAD."""

    Input = op.Input("Input of the forward op.")
    Filter = op.Input("Filter of the forward op.")
    Output_grad = op.Input("Shape of Output.")
    Input_grad = op.Output("Shape of Input.", dispensable=True)
    Filter_grad = op.Output("Shape of Filter.", dispensable=True)
    infer_shape = _infer_grad_shape
    make_grad = _make_double_grad


class DepthwiseConv2DGrad(_Depthwise2DAttrs, GradOpDef, type="depthwise_conv2d_grad"):
    """As conv2d_grad, per channel."""

    Input = op.Input("Input of the forward op.")
    Filter = op.Input("Filter of the forward op.")
    Output_grad = op.Input("Shape of Output.")
    Input_grad = op.Output("Shape of Input.", dispensable=True)
    Filter_grad = op.Output("Shape of Filter.", dispensable=True)
    infer_shape = _infer_grad_shape
    make_grad = _make_double_grad


class Conv3DGrad(_Conv3DAttrs, GradOpDef, type="conv3d_grad"):
    """As conv2d_grad, with a third spatial dim."""

    Input = op.Input("Input of the forward op.")
    Filter = op.Input("Filter of the forward op.")
    Output_grad = op.Input("Shape of Output.")
    Input_grad = op.Output("Shape of Input.", dispensable=True)
    Filter_grad = op.Output("Shape of Filter.", dispensable=True)
    infer_shape = _infer_grad_shape
    make_grad = _make_double_grad


class Conv2DGradGrad(_Conv2DAttrs, GradOpDef, type="conv2d_grad_grad"):
    """Gradient of conv2d_grad, which is linear in each of Input, Filter and Output@GRAD."""

    Input = op.Input("Input of the forward op.")
    Filter = op.Input("Filter of the forward op.")
    grad_out = op.Input("Output@GRAD of conv2d_grad.")
    grad_input_grad = op.Input("Gradient of Input@GRAD.", dispensable=True)
    grad_filter_grad = op.Input("Gradient of Filter@GRAD.", dispensable=True)
    Input_grad = op.Output("Shape of Input.", dispensable=True)
    Filter_grad = op.Output("Shape of Filter.", dispensable=True)
    grad_out_grad = op.Output("Shape of Output.", dispensable=True)
    infer_shape = _infer_double_grad_shape


class DepthwiseConv2DGradGrad(_Depthwise2DAttrs, GradOpDef, type="depthwise_conv2d_grad_grad"):
    """Gradient of depthwise_conv2d_grad."""

    Input = op.Input("Input of the forward op.")
    Filter = op.Input("Filter of the forward op.")
    grad_out = op.Input("Output@GRAD of depthwise_conv2d_grad.")
    grad_input_grad = op.Input("Gradient of Input@GRAD.", dispensable=True)
    grad_filter_grad = op.Input("Gradient of Filter@GRAD.", dispensable=True)
    Input_grad = op.Output("Shape of Input.", dispensable=True)
    Filter_grad = op.Output("Shape of Filter.", dispensable=True)
    grad_out_grad = op.Output("Shape of Output.", dispensable=True)
    infer_shape = _infer_double_grad_shape


class Conv3DGradGrad(_Conv3DAttrs, GradOpDef, type="conv3d_grad_grad"):
    """Gradient of conv3d_grad."""

    Input = op.Input("Input of the forward op.")
    Filter = op.Input("Filter of the forward op.")
    grad_out = op.Input("Output@GRAD of conv3d_grad.")
    grad_input_grad = op.Input("Gradient of Input@GRAD.", dispensable=True)
    grad_filter_grad = op.Input("Gradient of Filter@GRAD.", dispensable=True)
    Input_grad = op.Output("Shape of Input.", dispensable=True)
    Filter_grad = op.Output("Shape of Filter.", dispensable=True)
    grad_out_grad = op.Output("Shape of Output.", dispensable=True)
    infer_shape = _infer_double_grad_shape
