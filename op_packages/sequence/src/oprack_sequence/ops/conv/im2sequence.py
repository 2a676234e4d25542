"""im2sequence: all of the op but its kernels."""

from __future__ import annotations

from oprack.op import REQUIRED, Attr, GradOpDef, InferShapeContext, Input, OpDef, Output, dtype_of
from oprack.types import AttrType


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
