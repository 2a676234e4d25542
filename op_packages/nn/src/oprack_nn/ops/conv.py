"""Definitions of convolutions."""

from __future__ import annotations

from collections.abc import Sequence

from oprack import op
from oprack.op import Attr, GradOpDef, InferShapeContext, Input, OpDef, OpVersion, Output, dtype_of
from oprack.op.families import conv_out, resolve_pads
from oprack.op.sbp import convolution, transposed_convolution
from oprack.types import AttrType

from oprack_nn.ops._layout import join_dims, layout_attr, split_dims
from oprack_nn.ops._windows import algorithm_attr, paddings_attr, positive

# What the convolutions share: hints, dims, bases of the gradients.
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
    if c >= 0 <= c_per_group and c != c_per_group * groups:  # asked often, so messages are made when they are needed
        ctx.require(
            False,
            f"Input {list(dims)} has {c} channels ({ctx.attr('data_format')}), but Filter {list(ctx.dim('Filter'))} "
            f"takes {c_per_group} x groups {groups} = {c_per_group * groups}; check Filter, groups and data_format",
        )
    if k >= 0 and k % groups:
        ctx.require(
            False, f"Filter {list(ctx.dim('Filter'))} makes {k} channels, which groups {groups} does not divide"
        )
    pads = resolve_pads(ctx.attr("padding_algorithm"), ctx.attr("paddings"), spatial, ksize, ctx.attr("strides"))
    dilations = resolve_dilations(ctx.attr("padding_algorithm"), ctx.attr("dilations"))
    out = [conv_out(x, *rest) for x, *rest in zip(spatial, ksize, pads, ctx.attr("strides"), dilations, strict=True)]
    if any([o <= 0 and o != -1 for o in out]):
        ctx.require(
            False,
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


# What the transposed convolutions share: attributes, dims, base of the gradients.
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


class ConvExtras(CudnnExtras):
    """Hints of conv2d."""

    exhaustive_search = Attr(False, "Paddle: try all cuDNN algorithms.", extra=True)
    force_fp32_output = Attr(False, "Paddle: oneDNN bfloat16 kernels return float32.", extra=True)
    is_test = Attr(False, "Inference.", extra=True)
    use_addto = Attr(False, "Paddle: add the gradient to what its variable holds.", extra=True)


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
    versions = OpVersion("conv2d").checkpoint(USE_ADDTO_NOTE, ("new_attr", "use_addto", False))
    infer_shape = infer_conv
    sbp = convolution


class Conv2DGrad(ConvGrad, of=Conv2D):
    """Input@GRAD is the transposed convolution of Output@GRAD; Filter@GRAD correlates Input with Output@GRAD."""


class Conv2DGradGrad(ConvDoubleGrad, of=Conv2DGrad):
    """Gradient of conv2d_grad, which is linear in each of Input, Filter and Output@GRAD."""


class Conv2DTranspose(ConvTranspose2DAttrs, type="conv2d_transpose"):
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
        .checkpoint(OUTPUT_PADDING_NOTE, ("new_attr", "output_padding", []))
        .checkpoint(
            "New attributes force_fp32_output and mkldnn_data_type for oneDNN's bfloat16 kernel.",
            ("new_attr", "force_fp32_output", False),
            ("new_attr", "mkldnn_data_type", "float32"),
        )
    )
    infer_shape = infer_conv_transpose
    sbp = transposed_convolution


class Conv2DTransposeGrad(ConvTransposeGrad, of=Conv2DTranspose, reads="Input Filter Bias"):
    """Input@GRAD is the convolution of Output@GRAD with Filter; Filter@GRAD correlates Output@GRAD with Input."""

    Bias = op.Input("Bias of the forward op; gets no gradient.", dispensable=True)


class Conv2DTransposeGradGrad(
    GradOpDef,
    of=Conv2DTransposeGrad,
    reads="Input Filter Output@GRAD Input@GRAD@GRAD? Filter@GRAD@GRAD?",
    grads_of="Input? Filter? Output@GRAD?",
    names={"Output@GRAD": "grad_out", "Filter@GRAD": "grad_filter", "Input@GRAD": "grad_x"},
    dims={"Output@GRAD": conv_transpose_dims},
):
    """Gradient of conv2d_transpose_grad, which is linear in each of Input, Filter and Output@GRAD."""


class Conv3D(FusedConvExtras, type="conv3d"):
    r"""$$Output_{n,k,z,y,x} = \sum_{c,h,i,j} Input_{n,c,z s_d + h d_d - p_f,y s_h + i d_h - p_t,x s_w + j d_w - p_l}
    Filter_{k,c,h,i,j}$$

    conv2d with a third spatial dim, D.
    """

    Input = op.Input("[N, C, D, H, W], or [N, D, H, W, C] with data_format NDHWC.")
    Filter = op.Input("[K, C / groups, kd, kh, kw] in either layout.")
    Output = op.Output("[N, K, D', H', W'] in the layout of Input.")
    strides = positive([1, 1, 1], "Step along D, H and W.")
    paddings = paddings_attr(3)
    padding_algorithm = algorithm_attr()
    groups = Attr(1, "Groups of channels that see each other.").at_least(1)
    dilations = positive([1, 1, 1], "Distance of kernel taps along D, H and W.")
    data_format = layout_attr("NCDHW")
    versions = OpVersion("conv3d").checkpoint(USE_ADDTO_NOTE, ("new_attr", "use_addto", False))
    infer_shape = infer_conv
    sbp = convolution


class Conv3DGrad(ConvGrad, of=Conv3D):
    """As conv2d_grad, with a third spatial dim."""


class Conv3DGradGrad(ConvDoubleGrad, of=Conv3DGrad):
    """Gradient of conv3d_grad."""


class Conv3DTranspose(CudnnExtras, type="conv3d_transpose"):
    r"""$$Output_{n,k,z s_d + h d_d - p_f,y s_h + i d_h - p_t,x s_w + j d_w - p_l} \mathrel{+}= Input_{n,c,z,y,x}
    Filter_{c,k,h,i,j}$$

    conv2d_transpose with a third spatial dim, D.
    """

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
    versions = OpVersion("conv3d_transpose").checkpoint(OUTPUT_PADDING_NOTE, ("new_attr", "output_padding", []))
    infer_shape = infer_conv_transpose
    sbp = transposed_convolution


class Conv3DTransposeGrad(ConvTransposeGrad, of=Conv3DTranspose):
    """As conv2d_transpose_grad, with a third spatial dim."""


# conv_shift (Paddle 1.x) and its gradient: all of the ops but their kernels.
class ConvShift(OpDef, type="conv_shift"):
    r"""$$Out_{b,i} = \sum_{j=-h}^{h} X_{b, (i + j) \bmod M} Y_{b, j + h}$$ with h = (N - 1) / 2

    Each row is convolved around a circle with a filter of its own, as neural Turing machines shift their attention.
    """

    X = Input("[B, M].")
    Y = Input("Filters [B, N]; N is odd and at most M.")
    Out = Output("[B, M], LoD of X.")

    def infer_shape(ctx: InferShapeContext) -> None:
        x, y = ctx.require_rank("X", 2), ctx.require_rank("Y", 2)
        ctx.require_dims("Y", (x[0], -1), why="a filter for each row of X")
        ctx.require(
            y[1] < 0 or (y[1] % 2 == 1 and (x[1] < 0 or y[1] <= x[1])),
            f"Y has shape {list(y)}; expected an odd number of columns, at most {x[1]}, those of X",
        )
        ctx.set_dim("Out", x)
        ctx.share_lod("X", "Out")


class ConvShiftGrad(GradOpDef, of=ConvShift, reads="X Y"):
    r"""$$X@GRAD_{b,(i+j) \bmod M} = \sum_j Out@GRAD_{b,i} Y_{b,j+h}$$ and $$Y@GRAD_{b,j+h} = \sum_i Out@GRAD_{b,i}
    X_{b,(i+j) \bmod M}$$"""


class DepthwiseExtras(FusedConvExtras):
    """Hints of depthwise_conv2d."""

    use_cudnn = Attr(False, "Paddle: prefer the cuDNN kernel.", extra=True)
    fuse_relu_before_depthwise_conv = Attr(False, "Paddle: ReLU of the input fused by a GPU pass.", extra=True)
    use_quantizer = Attr(False, "Paddle: int8 oneDNN kernel.", extra=True)
    Scale_in = Attr(1.0, "Paddle: int8 scale of the input.", extra=True)
    Scale_in_eltwise = Attr(1.0, "Paddle: int8 scale of the fused addend.", extra=True)
    Scale_out = Attr(1.0, "Paddle: int8 scale of the output.", extra=True)
    Scale_weights = Attr([1.0], "Paddle: int8 scales of the filter.", type=AttrType.FLOATS, extra=True)


class DepthwiseConv2D(DepthwiseExtras, type="depthwise_conv2d"):
    r"""$$Output_{n,k,y,x} = \sum_{i,j} Input_{n,\lfloor k C / K \rfloor,y s_h + i d_h - p_t,x s_w + j d_w - p_l}
    Filter_{k,0,i,j}$$

    conv2d with one group per input channel; each channel makes K / C output channels.
    """

    Input = op.Input("[N, C, H, W], or [N, H, W, C] with data_format NHWC.")
    Filter = op.Input("[K, 1, kh, kw] in either layout.")
    Output = op.Output("[N, K, H', W'] in the layout of Input.")
    strides = positive([1, 1], "Step along H and W.")
    paddings = paddings_attr(2)
    padding_algorithm = algorithm_attr()
    groups = Attr(1, "Number of input channels.").at_least(1)
    dilations = positive([1, 1], "Distance of kernel taps along H and W.")
    data_format = layout_attr("NCHW")
    versions = OpVersion("depthwise_conv2d").checkpoint(USE_ADDTO_NOTE, ("new_attr", "use_addto", False))
    infer_shape = infer_conv
    sbp = convolution


class DepthwiseConv2DGrad(ConvGrad, of=DepthwiseConv2D):
    """As conv2d_grad, per channel."""


class DepthwiseConv2DGradGrad(ConvDoubleGrad, of=DepthwiseConv2DGrad):
    """Gradient of depthwise_conv2d_grad."""


class DepthwiseConv2DTranspose(ConvTranspose2DAttrs, type="depthwise_conv2d_transpose"):
    r"""$$Output_{n,c m + k,y s_h + i d_h - p_t,x s_w + j d_w - p_l} \mathrel{+}= Input_{n,c,y,x} Filter_{c,k,i,j}$$, m
    = K / C.

    conv2d_transpose with one group per input channel.
    """

    Input = op.Input("[N, C, H, W], or [N, H, W, C] with data_format NHWC.")
    Filter = op.Input("[C, K / groups, kh, kw] in either layout.")
    Bias = op.Input("[K].", dispensable=True, extra=True)
    Output = op.Output("[N, K, H', W'] in the layout of Input.")
    use_cudnn = Attr(False, "Paddle: prefer the cuDNN kernel.", extra=True)
    versions = OpVersion("depthwise_conv2d_transpose").checkpoint(
        OUTPUT_PADDING_NOTE, ("new_attr", "output_padding", [])
    )
    infer_shape = infer_conv_transpose
    sbp = transposed_convolution


class DepthwiseConv2DTransposeGrad(ConvTransposeGrad, of=DepthwiseConv2DTranspose, reads="Input Filter Bias"):
    """As conv2d_transpose_grad, per channel."""

    Bias = op.Input("Bias of the forward op; gets no gradient.", dispensable=True)


# tree_conv (Paddle 1.x) and its gradient: all of the ops but their kernels.
class TreeConv(OpDef, type="tree_conv"):
    r"""$$Out_u = \sum_{v} (\eta^l_v W_l + \eta^r_v W_r + \eta^t_v W_t) NodesVector_v$$ over the nodes v at most
    max_depth - 1 levels below u, with $$\eta^t = 1 - d / max\_depth, \; \eta^l = (1 - \eta^t) p, \; \eta^r = (1 -
    \eta^t)(1 - \eta^l)$$

    d is how far v is below u and p from 0 to 1 its place among its siblings, 1/2 for an only child. A window of a
    syntax tree (TBCNN, Mou et al., 2016).
    """

    NodesVector = Input("Features of nodes [B, n, F].")
    EdgeSet = Input("int32 [B, edges, 2]: parent and child, counted from 1; a 0 ends the list.")
    Filter = Input("[F, 3, output_size, num_filters], for left, right and top.")
    Out = Output("[B, n, output_size, num_filters].")
    max_depth = Attr(2, "Levels of a window.").greater_than(1)
    expected_kernel_type = dtype_of("NodesVector")

    def infer_shape(ctx: InferShapeContext) -> None:
        batch, nodes, width = ctx.require_rank("NodesVector", 3)
        ctx.require_dims("EdgeSet", (batch, -1, 2), why="parent and child of each edge")
        ctx.require_dims("Filter", (width, 3, -1, -1), why="the features of nodes, three times")
        ctx.set_dim("Out", (batch, nodes, *ctx.dim("Filter")[2:]))


class TreeConvGrad(GradOpDef, of=TreeConv, reads="NodesVector EdgeSet Filter", grads_of="NodesVector Filter"):
    """The sums of the forward op the other way round: of Out@GRAD by node, and by filter."""

    expected_kernel_type = dtype_of("NodesVector")
