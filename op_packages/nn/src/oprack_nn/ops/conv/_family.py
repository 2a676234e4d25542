"""What the convolutions share: hints, dims, bases of the gradients."""

from __future__ import annotations

from collections.abc import Sequence

from oprack.op import Attr, GradOpDef, InferShapeContext, OpDef
from oprack.op.windows import conv_out, resolve_pads

from oprack_nn.ops._layout import join_dims, split_dims

USE_ADDTO_NOTE = "New attribute use_addto: gradients are added in place."


def resolve_dilations(algorithm: str, dilations: Sequence[int]) -> list[int]:
    """Dilations in effect: 1 under SAME."""
    return [1] * len(dilations) if algorithm == "SAME" else list(dilations)


class CudnnExtras(OpDef):
    """Tuning hints of Paddle's GPU and oneDNN kernels, kept so that programs round-trip."""

    use_cudnn = Attr(True, "Paddle: prefer the cuDNN kernel.", extra=True)
    use_mkldnn = Attr(False, "Paddle: prefer the oneDNN kernel.", extra=True)
    workspace_size_MB = Attr(512, "Paddle: cuDNN workspace.", extra=True)


class MkldnnFuseExtras(CudnnExtras):
    """The same with the fusions of the oneDNN kernels."""

    force_fp32_output = Attr(False, "Paddle: oneDNN bfloat16 kernels return float32.", extra=True)
    is_test = Attr(False, "Inference.", extra=True)
    fuse_activation = Attr("", "Paddle: activation fused by oneDNN passes.", extra=True)
    fuse_alpha = Attr(0.0, "Parameter of fuse_activation.", extra=True)
    fuse_beta = Attr(0.0, "Parameter of fuse_activation.", extra=True)
    fuse_relu = Attr(False, "Paddle: ReLU fused by oneDNN passes.", extra=True)
    mkldnn_data_type = Attr("float32", "Paddle: dtype of the oneDNN kernel.", extra=True)


class FusedConvExtras(MkldnnFuseExtras):
    """Hints of conv3d and depthwise_conv2d."""

    exhaustive_search = Attr(False, "Paddle: try all cuDNN algorithms.", extra=True)
    fuse_residual_connection = Attr(False, "Paddle: addition fused by oneDNN passes.", extra=True)
    use_addto = Attr(False, "Paddle: add the gradient to what its variable holds.", extra=True)


def conv_dims(ctx: InferShapeContext) -> tuple[int, ...]:
    """Dims of Output, of any number of spatial dims."""
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


def infer_conv(ctx: InferShapeContext) -> None:
    """The shape rule of conv2d and its relatives."""
    ctx.set_dim("Output", conv_dims(ctx))


class ConvGrad(GradOpDef, reads="Input Filter", grads_of="Input? Filter?", dims={"Output@GRAD": conv_dims}):
    """Gradient of a convolution."""


class ConvDoubleGrad(
    GradOpDef,
    reads="Input Filter Output@GRAD Input@GRAD@GRAD? Filter@GRAD@GRAD?",
    grads_of="Input? Filter? Output@GRAD?",
    dims={"Output@GRAD": conv_dims},
    names={"Output@GRAD": "grad_out", "Filter@GRAD": "grad_filter", "Input@GRAD": "grad_input"},
):
    """Gradient of the gradient of a convolution."""
