"""roi_align: all of the op but its kernels."""

from __future__ import annotations

from oprack.op import Attr, GradOpDef, InferShapeContext, Input, OpDef, OpVersion, Output, dtype_of


def _output_dims(ctx: InferShapeContext) -> tuple[int, ...]:
    x, rois = ctx.require_rank("X", 4), ctx.require_rank("ROIs", 2)
    ctx.require(rois[1] in (4, -1), f"ROIs has shape {list(rois)}; expected [R, 4]")
    return rois[0], x[1], ctx.attr("pooled_height"), ctx.attr("pooled_width")


class RoiAlign(OpDef, type="roi_align"):
    r"""$$Out_{r,c,i,j} = \frac{1}{n_y n_x} \sum_{p,q} X_c\left(y_1 + \frac{h}{H'} (i + \frac{p + 0.5}{n_y}), x_1 +
    \frac{w}{W'} (j + \frac{q + 0.5}{n_x})\right)$$

    with bilinear samples of the region's image, which are 0 more than a pixel outside of it. (y_1, x_1) is the corner
    and h, w the size of region r in pixels of X, H' = pooled_height, W' = pooled_width (Mask R-CNN, He et al., 2017).
    """

    X = Input("Feature maps [N, C, H, W].")
    ROIs = Input("Regions [R, 4] as xmin, ymin, xmax, ymax; LoD or RoisNum tells the image of each.")
    RoisNum = Input("Regions of each image [N], int32.", dispensable=True)
    Out = Output("Pooled features [R, C, pooled_height, pooled_width].")
    pooled_height = Attr(1, "Rows of bins.").greater_than(0)
    pooled_width = Attr(1, "Columns of bins.").greater_than(0)
    spatial_scale = Attr(1.0, "From coordinates of ROIs to those of X.").greater_than(0.0)
    sampling_ratio = Attr(-1, "Samples per bin and direction; not positive: as many as a bin has pixels.")
    aligned = Attr(False, "Pixel centres lie at 0.5; regions may be smaller than a pixel.")
    expected_kernel_type = dtype_of("X")
    versions = (
        OpVersion("roi_align")
        .checkpoint("the unused input RpnRoisLod is gone", ("delete_input", "RpnRoisLod", None))
        .checkpoint("regions per image as a tensor", ("new_input", "RoisNum", None))
        .checkpoint("exact pixel centres", ("new_attr", "aligned", False))
    )

    def infer_shape(ctx: InferShapeContext) -> None:
        ctx.set_dim("Out", _output_dims(ctx))


class RoiAlignGrad(
    GradOpDef, of=RoiAlign, reads="ROIs RoisNum", shape_of="X", grads_of="X", dims={"Out@GRAD": _output_dims}
):
    """Each bin's gradient is spread over the pixels that its samples read."""
