"""density_prior_box: all of the op but its kernel."""

from __future__ import annotations

from oprack import op
from oprack.op import REQUIRED, Attr, InferShapeContext, OpDef, dtype_of, empty_grad
from oprack.types import AttrType


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
        shape = (dims[2], dims[3], priors, 4)
        if ctx.attr("flatten_to_2d"):
            cells = dims[2] * dims[3] if min(dims[2:]) >= 0 else -1
            shape = (cells * priors if cells >= 0 else -1, 4)
        ctx.set_dim("Boxes", shape)
        ctx.set_dim("Variances", shape)
