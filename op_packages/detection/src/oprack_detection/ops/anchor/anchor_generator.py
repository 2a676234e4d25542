"""anchor_generator: all of the op but its kernel."""

from __future__ import annotations

from oprack.op import REQUIRED, Attr, InferShapeContext, Input, OpDef, Output, empty_grad
from oprack.types import AttrType


class AnchorGenerator(OpDef, type="anchor_generator"):
    r"""$$Anchors_{y,x} = \left(x\, stride_w + offset (stride_w - 1) \mp \tfrac{w - 1}{2}, \; y\, stride_h + offset
    (stride_h - 1) \mp \tfrac{h - 1}{2}\right)$$

    Anchors of Faster R-CNN (Ren et al., 2015): for each cell (x, y) one box per aspect ratio a (outer) and size s
    (inner), in pixels, with $$w = \frac{s}{stride_w} w_a, \; h = \frac{s}{stride_h} h_a$$, where $$w_a = \lfloor
    \sqrt{stride_w stride_h / a} + 0.5 \rfloor, \; h_a = \lfloor w_a a + 0.5 \rfloor$$.
    """

    Input = Input("Feature map [N, C, H, W]; only its shape is read.")
    Anchors = Output("Boxes [H, W, anchors, 4].")
    Variances = Output("variances, once per box.")
    anchor_sizes = Attr(REQUIRED, "Square roots of the areas in pixels.", type=AttrType.FLOATS)
    aspect_ratios = Attr(REQUIRED, "Height over width.", type=AttrType.FLOATS).each(lambda v: v > 0, "greater than 0")
    variances = Attr(REQUIRED, "Four variances for box_coder.", type=AttrType.FLOATS).size(4)
    stride = Attr([16.0, 16.0], "Width and height of a cell in pixels.").size(2)
    offset = Attr(0.5, "Position of the centre in its cell.")
    make_grad = empty_grad

    def infer_shape(ctx: InferShapeContext) -> None:
        dims = ctx.require_rank("Input", 4)
        shape = (dims[2], dims[3], len(ctx.attr("anchor_sizes")) * len(ctx.attr("aspect_ratios")), 4)
        ctx.set_dim("Anchors", shape)
        ctx.set_dim("Variances", shape)
