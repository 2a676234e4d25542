"""Windows that slide over images, and images sampled at other places."""

from __future__ import annotations

from collections.abc import Sequence

from oprack.op import REQUIRED, Attr, InferShapeContext, InferVarTypeContext, Input, Output, dtype_of
from oprack.types import AttrType

from oprack_onnx_ops.ops._common import OnnxOp, dtypes, numbers, optional_ints, same_shape

KERNEL_SHAPE = Attr(REQUIRED, "Sizes of the window.", type=AttrType.INTS).each(lambda k: k > 0, "sizes above 0")
STRIDES = optional_ints("From window to window; 1 each where it is empty.")
DILATIONS = optional_ints("Between elements of a window; 1 each where it is empty.")
PADS = optional_ints("Before each axis, then behind each; 0 where it is empty.")
AUTO_PAD = Attr("NOTSET", "How pads follow from the sizes, if they do.").in_set(
    ["NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID"]
)
CEIL_MODE = Attr(False, "Sizes are rounded up.")


def window_axis(
    size: int, kernel: int, stride: int, dilation: int, pads: tuple[int, int], auto: str, ceil: bool
) -> tuple[int, int, int]:
    """Windows along one axis.

    Returns:
        How many there are, and what is put before and behind the axis.
    """
    reach = dilation * (kernel - 1) + 1
    if auto.startswith("SAME"):
        count = -(-size // stride)
        total = max((count - 1) * stride + reach - size, 0)
        less, more = total // 2, total - total // 2
        return (count, less, more) if auto == "SAME_UPPER" else (count, more, less)
    before, behind = (0, 0) if auto == "VALID" else pads
    span = size + before + behind - reach
    if not ceil:
        return span // stride + 1, before, behind
    count = -(-span // stride) + 1
    # a window that would begin behind the data is none
    return (count - 1 if (count - 1) * stride >= size + before else count), before, behind


def window_sizes(ctx: InferShapeContext, dims: Sequence[int], kernel: Sequence[int]) -> list[int]:
    """How many windows there are along each axis of an image; -1 where its size is not known."""
    rank = len(kernel)
    strides, dilations = ctx.attr("strides") or [1] * rank, ctx.attr("dilations") or [1] * rank
    pads = ctx.attr("pads") or [0] * (2 * rank)
    ceil = "ceil_mode" in ctx.attrs and bool(ctx.attr("ceil_mode"))
    ctx.require(
        len(dims) == rank + 2, f"X has shape {list(dims)} and the window {list(kernel)}; expected rank {rank + 2}"
    )
    fits = len(strides) == rank == len(dilations) and len(pads) == 2 * rank
    ctx.require(
        fits, f"strides, dilations, pads are {strides}, {dilations}, {pads}; expected {rank}, {rank}, {2 * rank}"
    )
    found = []
    for i in range(rank):
        ends = (pads[i], pads[rank + i])
        size = dims[2 + i]
        count = window_axis(size, kernel[i], strides[i], dilations[i], ends, ctx.attr("auto_pad"), ceil)[0]
        found.append(-1 if size < 0 or kernel[i] < 0 else max(count, 0))
    return found


class OnnxPool(OnnxOp):
    """What pools share."""

    X = Input("[batch, channels, *image].")
    Y = Output("[batch, channels, *windows].")
    kernel_shape = KERNEL_SHAPE
    strides = STRIDES
    dilations = DILATIONS
    pads = PADS
    auto_pad = AUTO_PAD
    ceil_mode = CEIL_MODE

    def infer_shape(ctx: InferShapeContext) -> None:
        dims = ctx.dim("X")
        if dims:
            out = [*dims[:2], *window_sizes(ctx, dims, ctx.attr("kernel_shape"))]
            for slot in ctx.proto.outputs:
                ctx.set_dim(slot, out)


class OnnxMaxPool(OnnxPool, type="onnx_max_pool"):
    r"""$$Y_p = \max_{i \in window(p)} X_i$$ and where it is."""

    Indices = Output("int64: the place in X as one long row.", dispensable=True)
    storage_order = Attr(False, "Indices count column by column.")

    def infer_var_type(ctx: InferVarTypeContext) -> None:
        dtypes(ctx, Y=ctx.dtype("X"), Indices="int64")


class OnnxAveragePool(OnnxPool, type="onnx_average_pool"):
    r"""$$Y_p = \frac{1}{n_p} \sum_{i \in window(p)} X_i$$ with the number $n_p$ of elements that count."""

    count_include_pad = Attr(False, "What was put around the image counts, as 0.")


class OnnxLpPool(OnnxPool, type="onnx_lp_pool"):
    r"""$$Y = (\sum |X|^p)^{1/p}$$ over each window."""

    p = Attr(2, "Which norm.").at_least(1)


class OnnxMaxUnpool(OnnxOp, type="onnx_max_unpool"):
    r"""$$output_{I_p} = X_p$$ and 0 elsewhere."""

    X = Input("[batch, channels, *windows].")
    I = Input("int64, shape of X: places in the result of the least size, as one long row.")  # noqa: E741
    output_shape = Input("int64: the shape of output, where it is larger than need be.", dispensable=True)
    output = Output("[batch, channels, *image].")
    kernel_shape = KERNEL_SHAPE
    strides = STRIDES
    pads = PADS
    expected_kernel_type = dtype_of("X")

    def infer_shape(ctx: InferShapeContext) -> None:
        wanted = numbers(ctx, "output_shape")
        ctx.set_dim("output", [-1] * len(ctx.dim("X")) if wanted is None else wanted)


class OnnxConv(OnnxOp, type="onnx_conv"):
    r"""$$Y = X * W + B$$ over images of any rank, with pads that may follow from sizes."""

    X = Input("[batch, channels, *image].")
    W = Input("[filters, channels / group, *kernel].")
    B = Input("[filters].", dispensable=True)
    Y = Output("[batch, filters, *windows].")
    group = Attr(1, "Groups of channels.")
    strides = STRIDES
    dilations = DILATIONS
    pads = PADS
    auto_pad = AUTO_PAD

    def infer_shape(ctx: InferShapeContext) -> None:
        dims, filters = ctx.dim("X"), ctx.dim("W")
        if dims and filters:
            ctx.set_dim("Y", [dims[0], filters[0], *window_sizes(ctx, dims, filters[2:])])


class OnnxConvTranspose(OnnxOp, type="onnx_conv_transpose"):
    r"""$$Y_q = B + \sum_{(p, k): s p + d k = q} W_k^T X_p$$: the gradient of a convolution."""

    X = Input("[batch, channels, *windows].")
    W = Input("[channels, filters / group, *kernel].")
    B = Input("[filters].", dispensable=True)
    Y = Output("[batch, filters, *image].")
    group = Attr(1, "Groups of channels.")
    strides = STRIDES
    dilations = DILATIONS
    pads = PADS
    auto_pad = AUTO_PAD
    output_padding = optional_ints("What is added behind each axis.")
    output_shape = optional_ints("Sizes of the image, from which pads follow.")

    def infer_shape(ctx: InferShapeContext) -> None:
        dims, filters = ctx.dim("X"), ctx.dim("W")
        if dims and filters:
            ctx.set_dim("Y", [dims[0], filters[1] * ctx.attr("group"), *([-1] * (len(dims) - 2))])


class OnnxDeformConv(OnnxOp, type="onnx_deform_conv"):
    r"""$$Y_p = B + \sum_k W_k\, mask_{k,p}\, X(s p + d k + offset_{k,p})$$ with X interpolated."""

    X = Input("[batch, channels, height, width].")
    W = Input("[filters, channels / group, *kernel].")
    offset = Input("[batch, offset_group * elements * 2, *windows].")
    B = Input("[filters].", dispensable=True)
    mask = Input("[batch, offset_group * elements, *windows]: factors.", dispensable=True)
    Y = Output("[batch, filters, *windows].")
    group = Attr(1, "Groups of channels.")
    offset_group = Attr(1, "Groups of channels with an offset of their own.")
    strides = STRIDES
    dilations = DILATIONS
    pads = PADS

    def infer_shape(ctx: InferShapeContext) -> None:
        dims, filters, offset = ctx.dim("X"), ctx.dim("W"), ctx.dim("offset")
        if dims and filters and offset:
            ctx.set_dim("Y", [dims[0], filters[0], *offset[2:]])


class OnnxRoiAlign(OnnxOp, type="onnx_roi_align"):
    r"""$$Y_{r,p} = \frac{1}{n} \sum_{s \in cell(p)} X(s)$$ or the maximum, for a grid of cells over each part."""

    X = Input("[batch, channels, height, width].")
    rois = Input("[n, 4]: x and y of the first corner, then of the last one.")
    batch_indices = Input("int64 [n]: the image of each.")
    Y = Output("[n, channels, output_height, output_width].")
    output_height = Attr(1, "Rows of the grid.")
    output_width = Attr(1, "Columns of the grid.")
    sampling_ratio = Attr(0, "Samples along a side of a cell; 0: as many as pixels.")
    spatial_scale = Attr(1.0, "Factor of rois.")
    mode = Attr("avg", "avg or max.").in_set(["avg", "max"])
    coordinate_transformation_mode = Attr("half_pixel", "half_pixel: shifted by half a pixel.").in_set(
        ["half_pixel", "output_half_pixel"]
    )
    expected_kernel_type = dtype_of("X")

    def infer_shape(ctx: InferShapeContext) -> None:
        dims, rois = ctx.require_rank("X", 4), ctx.require_rank("rois", 2)
        ctx.set_dim("Y", [rois[0], dims[1], ctx.attr("output_height"), ctx.attr("output_width")])


class OnnxGridSample(OnnxOp, type="onnx_grid_sample"):
    r"""$$Y_p = X(grid_p)$$ with X interpolated between its places, which count from -1 to 1."""

    X = Input("[batch, channels, *image].")
    grid = Input("[batch, *out, rank of the image]: x first.")
    Y = Output("[batch, channels, *out].")
    mode = Attr("linear", "How elements between places are found.").in_set(["linear", "nearest", "cubic"])
    padding_mode = Attr("zeros", "What is outside.").in_set(["zeros", "border", "reflection"])
    align_corners = Attr(False, "-1 and 1 are the centres of the corners; else their outer edges.")
    expected_kernel_type = dtype_of("X")

    def infer_shape(ctx: InferShapeContext) -> None:
        dims, grid = ctx.dim("X"), ctx.dim("grid")
        if dims and grid:
            ctx.set_dim("Y", [*dims[:2], *grid[1:-1]])


class OnnxBatchNormTraining(OnnxOp, type="onnx_batch_norm_training"):
    r"""$$Y = \frac{X - \mu}{\sqrt{\sigma^2 + \epsilon}} \cdot scale + B$$ with mean and variance of the batch."""

    X = Input("[batch, channels, ...].")
    scale = Input("[channels].")
    B = Input("[channels].")
    input_mean = Input("[channels]: the running mean before.")
    input_var = Input("[channels]: the running variance before.")
    Y = Output("Shape of X.")
    running_mean = Output("[channels]: the running mean after.", dispensable=True)
    running_var = Output("[channels]: the running variance after.", dispensable=True)
    epsilon = Attr(1e-5, "Added to the variance.")
    momentum = Attr(0.9, "Share of what was before.")
    expected_kernel_type = dtype_of("X")

    def infer_shape(ctx: InferShapeContext) -> None:
        same_shape(ctx, "X", "Y")
        same_shape(ctx, "input_mean", "running_mean", "running_var")
