"""Windows over the rows of a sequence, and rows out of the windows of an image."""

from __future__ import annotations

from oprack.op import REQUIRED, Attr, ForwardOp, GradOpDef, InferShapeContext, Input, OpDef, Output, dtype_of
from oprack.op.sbp import sequences
from oprack.types import AttrType

from oprack_sequence.ops._infer import same_as


def _window_count(size: int, kernel: int, before: int, after: int, stride: int) -> int:
    """Windows along one axis."""
    return (before + after + size - kernel) // stride + 1


def _output_dims(ctx: InferShapeContext, has_sizes: bool = False) -> tuple[int, ...]:
    batch, channels, height, width = ctx.require_rank("X", 4)
    (kh, kw), (sh, sw), pads = ctx.attr("kernels"), ctx.attr("strides"), ctx.attr("paddings")
    rows = -1
    if min(batch, height, width) >= 0 and not has_sizes:
        down, across = _window_count(height, kh, pads[0], pads[2], sh), _window_count(width, kw, pads[1], pads[3], sw)
        ctx.require(
            down > 0 and across > 0,
            f"windows {[kh, kw]} are larger than X {[height, width]} with paddings {list(pads)}; raise paddings",
        )
        rows = batch * down * across
    return rows, channels * kh * kw if channels >= 0 else -1


class Im2Sequence(OpDef, type="im2sequence"):
    r"""$$Out_{o_n + y W' + x, (c k_h + i) k_w + j} = X_{n,c,y s_h + i - p_{up},x s_w + j - p_{left}}$$, 0 outside of
    the image.

    Every image becomes a sequence of its windows, each flattened to a row [C kh kw], in reading order. With Y, the real
    size (h, w) of each image, only windows in its first ceil(size / out_stride) pixels and their padding are taken;
    Paddle ignores Y for a single image, and so does this op.
    """

    X = Input("Images [B, C, H, W].")
    Y = Input("Real sizes [B, 2], in pixels of the image that X was computed from.", dispensable=True)
    Out = Output("[windows of all images, C kh kw] with LoD.")
    kernels = (
        Attr(REQUIRED, "Height and width of a window.", type=AttrType.INTS).size(2).each(lambda v: v > 0, "positive")
    )
    strides = Attr([1, 1], "Vertical and horizontal step.").size(2).each(lambda v: v > 0, "positive")
    paddings = Attr([0, 0, 0, 0], "Zeros around the image: up, left, down, right.").size(4)
    out_stride = Attr([1, 1], "Pixels of the original image per pixel of X.").size(2)
    expected_kernel_type = dtype_of("X")

    def infer_shape(ctx: InferShapeContext) -> None:
        ctx.set_dim("Out", _output_dims(ctx, ctx.has_input("Y")))
        ctx.set_lod_level("Out", 1)


class Im2SequenceGrad(GradOpDef, of=Im2Sequence, reads="X", grads_of="X", dims={"Out@GRAD": _output_dims}):
    """Adds every window's gradient up at the pixels that it came from; defined without Y only, as in Paddle."""


class RowConv(OpDef, type="row_conv"):
    r"""Lookahead convolution, element by element: $$Out_t = \sum_{k=0}^{K-1} X_{t+k} \odot Filter_k$$

    Rows past the end of the sequence are zero.
    """

    X = Input("[N, D] with LoD, or [B, T, D].")
    Filter = Input("[K, D]: weights of this row and of K - 1 rows to come.")
    Out = Output("Shape and LoD of X.")
    sbp = sequences(("X",), ("Out",))

    def infer_shape(ctx: InferShapeContext) -> None:
        if len(ctx.require_rank("X", 2, 3)) == 2:
            ctx.require_lod("X")
        ctx.require_rank("Filter", 2)
        same_as(ctx, "X", "Out")


class RowConvGrad(GradOpDef, of=RowConv, reads="X Filter", lod=False):
    """Gradient of row_conv."""


class SequenceConv(OpDef, type="sequence_conv"):
    r"""Convolution along each sequence: $$Out_t = [X_{t+s}, \dots, X_{t+s+L-1}] \cdot Filter$$

    with s = contextStart and L = contextLength. Rows before the first or past the last of the sequence are zero or,
    with paddingTrainable, rows of PaddingData: first those before (-s of them), then those past the end.
    """

    X = Input("[N, D] with LoD.")
    PaddingData = Input("[rows before + rows past, D], for paddingTrainable.", dispensable=True)
    Filter = Input("[L D, M].")
    Out = Output("[N, M] with the LoD of X.")
    paddingTrainable = Attr(False, "Pad with PaddingData instead of zeros.")
    contextLength = Attr(REQUIRED, "Rows of a window, L.", type=AttrType.INT).at_least(1)
    contextStart = Attr(0, "Where a window begins, relative to its row.")
    contextStride = Attr(1, "Only 1 is defined.").in_set((1,))
    sbp = sequences(("X",), ("Out",))

    def infer_shape(ctx: InferShapeContext) -> None:
        ctx.require_lod("X")
        rows, width = ctx.require_rank("X", 2)
        taps, channels = ctx.require_rank("Filter", 2)
        length = ctx.attr("contextLength")
        ctx.require(
            width < 0 or taps < 0 or taps == length * width,
            f"Filter has shape {[taps, channels]}; expected contextLength {length} times the {width} columns of X "
            f"= {length * width} rows",
        )
        ctx.set_dim("Out", (rows, channels))
        ctx.share_lod("X", "Out")


def _trains_padding(fwd: ForwardOp) -> bool:
    return fwd.attrs["paddingTrainable"]


class SequenceConvGrad(
    GradOpDef,
    of=SequenceConv,
    reads="X Filter PaddingData Out@GRAD",
    grads_of="X Filter PaddingData",
    when={"PaddingData": _trains_padding, "PaddingData@GRAD": _trains_padding},
):
    """Gradient of sequence_conv."""

    expected_kernel_type = dtype_of("Out@GRAD")


class VarConv2d(OpDef, type="var_conv_2d"):
    r"""$$Out^{(b)}_{o,y,x} = \sum_{c,i,j} W_{o, (c K_h + i) K_w + j} X^{(b)}_{c, y s_h + i - \lfloor K_h / 2 \rfloor,
    x s_w + j - \lfloor K_w / 2 \rfloor}$$, 0 outside of an image

    A convolution of images that differ in size: image b has as many rows and columns as sequence b of ROW and COLUMN.
    """

    X = Input("Images, one after the other, [elements, 1] with LoD.")
    ROW = Input("Its LoD gives the rows of each image.")
    COLUMN = Input("Its LoD gives the columns of each image.")
    W = Input("[OutputChannel, InputChannel x KernelH x KernelW].")
    Out = Output("[elements, 1]; a sequence is one image.")
    Col = Output(
        "The windows of each image [InputChannel x KernelH x KernelW, places], one after the other.", stop_gradient=True
    )
    InputChannel = Attr(1, "Channels of X.").greater_than(0)
    OutputChannel = Attr(1, "Channels of Out.").greater_than(0)
    StrideH = Attr(1, "Rows from one window to the next.").greater_than(0)
    StrideW = Attr(1, "Columns from one window to the next.").greater_than(0)
    KernelH = Attr(1, "Rows of a window.").greater_than(0)
    KernelW = Attr(1, "Columns of a window.").greater_than(0)

    def infer_shape(ctx: InferShapeContext) -> None:
        for slot in ("X", "ROW", "COLUMN"):
            ctx.require_lod(slot)
        ctx.require_dims("X", (-1, 1), why="one element a row")
        window = ctx.attr("InputChannel") * ctx.attr("KernelH") * ctx.attr("KernelW")
        ctx.require_dims("W", (ctx.attr("OutputChannel"), window), why="a filter for each channel of Out")
        for slot in ("Out", "Col"):
            ctx.set_dim(slot, (-1, 1))
            ctx.set_lod_level(slot, 1)


class VarConv2dGrad(
    GradOpDef, of=VarConv2d, reads="X ROW COLUMN W Out Col Out@GRAD", shape_of="Out ROW COLUMN", grads_of="X W"
):
    r"""$$W@GRAD = \sum_b Out@GRAD^{(b)} Col^{(b)\top}$$, and X@GRAD sums $$W^\top Out@GRAD^{(b)}$$ over the windows"""
