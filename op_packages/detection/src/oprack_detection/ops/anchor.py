"""Definitions of anchors and prior boxes."""

from __future__ import annotations

from collections.abc import Sequence

from oprack import op
from oprack.op import REQUIRED, Attr, InferShapeContext, Input, OpDef, Output, dtype_of, empty_grad
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


class DensityPriorBox(OpDef, type="density_prior_box"):
    r"""Prior boxes on a grid finer than the cells: for each fixed size s with density d, and each ratio r,
    $$d \times d$$ boxes of size $$(s \sqrt r, s / \sqrt r)$$ spread over a cell; corners relative to the image"""

    Input = op.Input("Feature map [N, C, H, W]; only its shape is read.")
    Image = op.Input("Images [N, C, H, W]; only their shape is read.")
    Boxes = op.Output("Boxes [H, W, priors, 4], or [H * W * priors, 4].")
    Variances = op.Output("variances, once per box.")
    variances = Attr(REQUIRED, "Four variances for box_coder.", type=AttrType.FLOATS).size(4)
    clip = Attr(True, "Clip corners to [0, 1].")
    flatten_to_2d = Attr(False, "Output [H * W * priors, 4].")
    step_w = Attr(0.0, "Distance of cells in pixels; 0: width of the image / width of the map.").at_least(0.0)
    step_h = Attr(0.0, "Distance of cells in pixels; 0: height of the image / height of the map.").at_least(0.0)
    offset = Attr(0.5, "Position of the centre in its cell.")
    fixed_sizes = Attr([], "Sides of the squares in pixels.", type=AttrType.FLOATS).each(
        lambda v: v > 0, "greater than 0"
    )
    fixed_ratios = Attr([], "Width over height.", type=AttrType.FLOATS).each(lambda v: v > 0, "greater than 0")
    densities = Attr([], "Boxes per cell and direction, one number per fixed size.", type=AttrType.INTS).each(
        lambda v: v > 0, "greater than 0"
    )
    make_grad = empty_grad
    expected_kernel_type = dtype_of("Input")

    def infer_shape(ctx: InferShapeContext) -> None:
        dims = ctx.require_rank("Input", 4)
        ctx.require_rank("Image", 4)
        sizes, densities = ctx.attr("fixed_sizes"), ctx.attr("densities")
        ctx.require(
            len(sizes) == len(densities),
            f"fixed_sizes has {len(sizes)} and densities {len(densities)} elements; expected as many of both",
        )
        priors = sum(d * d for d in densities) * len(ctx.attr("fixed_ratios"))
        shape: tuple[int, ...] = (dims[2], dims[3], priors, 4)
        if ctx.attr("flatten_to_2d"):
            cells = dims[2] * dims[3] if min(dims[2:]) >= 0 else -1
            shape = (cells * priors if cells >= 0 else -1, 4)
        ctx.set_dim("Boxes", shape)
        ctx.set_dim("Variances", shape)


def expanded_ratios(ratios: Sequence[float], flip: bool) -> list[float]:
    """1 and the other aspect ratios without repetition, each followed by its inverse when flip is set."""
    found = [1.0]
    for ratio in ratios:
        if all(abs(ratio - r) >= 1e-6 for r in found):
            found.append(ratio)
            if flip:
                found.append(1.0 / ratio)
    return found


class PriorBox(OpDef, type="prior_box"):
    r"""SSD's default boxes: for each cell and min_size m one box of size $$(m \sqrt{r}, m / \sqrt{r})$$ per aspect
    ratio r, and one square of side $$\sqrt{m \cdot max}$$; corners are relative to the image"""

    Input = op.Input("Feature map [N, C, H, W]; only its shape is read.")
    Image = op.Input("Images [N, C, H, W]; only their shape is read.")
    Boxes = op.Output("Boxes [H, W, priors, 4].")
    Variances = op.Output("variances, once per box.")
    min_sizes = Attr(REQUIRED, "Sides of the smaller squares in pixels.", type=AttrType.FLOATS).each(
        lambda v: v > 0, "greater than 0"
    )
    max_sizes = Attr([], "Sides of the larger squares, one per min_size, or none.", type=AttrType.FLOATS)
    aspect_ratios = Attr([], "Width over height; 1 is always there.", type=AttrType.FLOATS).each(
        lambda v: v > 0, "greater than 0"
    )
    variances = Attr([], "Four variances for box_coder.", type=AttrType.FLOATS).size(4)
    flip = Attr(True, "Add the inverse of each aspect ratio.")
    clip = Attr(True, "Clip corners to [0, 1].")
    step_w = Attr(0.0, "Distance of cells in pixels; 0: width of the image / width of the map.").at_least(0.0)
    step_h = Attr(0.0, "Distance of cells in pixels; 0: height of the image / height of the map.").at_least(0.0)
    offset = Attr(0.5, "Position of the centre in its cell.")
    min_max_aspect_ratios_order = Attr(False, "Order min, max, ratios as in Caffe; else min, ratios, max.")
    use_mkldnn = Attr(False, "Run oneDNN's kernel where its plugin is installed.", extra=True)
    use_quantizer = Attr(False, "Kept for quantised programs.", extra=True)
    mkldnn_data_type = Attr("float32", "dtype of oneDNN's kernel.", extra=True)
    make_grad = empty_grad
    expected_kernel_type = dtype_of("Input")

    def infer_shape(ctx: InferShapeContext) -> None:
        dims = ctx.require_rank("Input", 4)
        ctx.require_rank("Image", 4)
        small, large = ctx.attr("min_sizes"), ctx.attr("max_sizes")
        ctx.require(
            len(large) in (0, len(small)) and all(b > a for a, b in zip(small, large, strict=False)),
            f"min_sizes is {small} and max_sizes {large}; expected none or one larger max_size per min_size",
        )
        ratios = len(expanded_ratios(ctx.attr("aspect_ratios"), ctx.attr("flip")))
        shape = (dims[2], dims[3], ratios * len(small) + len(large), 4)
        ctx.set_dim("Boxes", shape)
        ctx.set_dim("Variances", shape)
