"""What the transposed convolutions share: attributes, dims, base of the gradients."""

from __future__ import annotations

from collections.abc import Sequence

from oprack.op import Attr, GradOpDef, InferShapeContext
from oprack.op.windows import resolve_pads
from oprack.types import AttrType

from oprack_nn.ops._layout import join_dims, layout_attr, split_dims
from oprack_nn.ops._windows import algorithm_attr, paddings_attr, positive
from oprack_nn.ops.conv._family import MkldnnFuseExtras, resolve_dilations

OUTPUT_PADDING_NOTE = "New attribute output_padding: extra rows and columns at the end."


def conv_transpose_out(size: int, k: int, pad: tuple[int, int], stride: int, dilation: int) -> int:
    """Outputs of a transposed convolution along one dim; -1 when the input's size or the kernel's is not known."""
    return -1 if size < 0 or k < 0 else (size - 1) * stride - pad[0] - pad[1] + dilation * (k - 1) + 1


def _chosen_sizes(ctx: InferShapeContext, least: Sequence[int], strides: Sequence[int]) -> list[int]:
    """Spatial dims as output_size gives them; -1 where it names a variable, whose value is not known at build time."""
    size = ctx.attr("output_size")
    sizes = [-1] * len(strides) if isinstance(size, str) else [s if isinstance(s, int) else -1 for s in size]
    _check_length(ctx, "output_size", sizes, len(strides))
    for wanted, smallest, step in zip(sizes, least, strides, strict=True):
        ctx.require(
            smallest < 0 or wanted < 0 or smallest <= wanted < smallest + step,
            f"output_size is {sizes}; expected {smallest} <= {wanted} < {smallest + step} there, since several sizes "
            "within one stride share an Input shape",
        )
    return sizes


def _padded_sizes(
    ctx: InferShapeContext, least: Sequence[int], strides: Sequence[int], dilations: Sequence[int]
) -> list[int]:
    """Spatial dims with the rows and columns that output_padding adds."""
    extra = ctx.attr("output_padding")
    _check_length(ctx, "output_padding", extra, len(strides))
    for added, step, dilation in zip(extra, strides, dilations, strict=True):
        ctx.require(
            0 <= added < max(step, dilation),
            f"output_padding is {list(extra)}; expected less than stride {step} or dilation {dilation}",
        )
    return [o if o < 0 else o + e for o, e in zip(least, extra, strict=True)]


def conv_transpose_dims(ctx: InferShapeContext) -> tuple[int, ...]:
    """Dims of Output, of any number of spatial dims."""
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
    if ctx.attr("output_size"):
        out = _chosen_sizes(ctx, out, strides)
    elif ctx.attr("output_padding"):
        out = _padded_sizes(ctx, out, strides, dilations)
    channels = k_per_group * ctx.attr("groups") if k_per_group > 0 else -1
    return join_dims(n, channels, out, ctx.attr("data_format"))


def infer_conv_transpose(ctx: InferShapeContext) -> None:
    """The shape rule of conv2d_transpose and its relatives."""
    ctx.set_dim("Output", conv_transpose_dims(ctx))


def _check_length(ctx: InferShapeContext, name: str, value: Sequence[int], rank: int) -> None:
    ctx.require(len(value) == rank, f"{name} is {list(value)}; expected {rank} numbers, one per spatial dim")


class ConvTransposeGrad(
    GradOpDef, reads="Input Filter", grads_of="Input? Filter?", dims={"Output@GRAD": conv_transpose_dims}
):
    """Gradient of a transposed convolution."""


class ConvTranspose2DAttrs(MkldnnFuseExtras):
    """Attributes of transposed convolutions of images."""

    strides = positive([1, 1], "Distance of the inputs along H and W of the output.")
    paddings = paddings_attr(2)
    output_padding = Attr([], "Extra rows and columns at the end; empty for none.", type=AttrType.INTS)
    output_size = Attr([], "H and W of the output; empty for the smallest.", type=AttrType.INTS, support_tensor=True)
    padding_algorithm = algorithm_attr()
    groups = Attr(1, "Groups of channels that see each other.").at_least(1)
    dilations = positive([1, 1], "Distance of kernel taps along H and W.")
    data_format = layout_attr("NCHW")
