"""prroi_pool (Paddle 1.x) and its gradient: all of the ops but their kernels."""

from __future__ import annotations

from oprack.op import Attr, GradOpDef, InferShapeContext, Input, OpDef, Output, dtype_of


def _output_dims(ctx: InferShapeContext) -> tuple[int, ...]:
    x, rois = ctx.require_rank("X", 4), ctx.require_rank("ROIs", 2)
    ctx.require(rois[1] in (4, -1), f"ROIs has shape {list(rois)}; expected [R, 4]")
    return rois[0], x[1], ctx.attr("pooled_height"), ctx.attr("pooled_width")


class PrroiPool(OpDef, type="prroi_pool"):
    r"""$$Out_{r,c,i,j} = \frac{1}{|bin|} \int_{bin_{r,i,j}} X_c(y, x) \, dy \, dx$$ with X interpolated bilinearly

    The exact mean over a bin, which is smooth in the region's corners; 0 for an empty bin (Jiang et al., 2018).
    """

    X = Input("Feature maps [N, C, H, W].")
    ROIs = Input("Regions [R, 4] as xmin, ymin, xmax, ymax; LoD or BatchRoINums tells the image of each.")
    BatchRoINums = Input("Regions of each image [N].", dispensable=True)
    Out = Output("Pooled features [R, C, pooled_height, pooled_width].")
    spatial_scale = Attr(1.0, "From coordinates of ROIs to those of X.").greater_than(0.0)
    pooled_height = Attr(1, "Rows of bins.").greater_than(0)
    pooled_width = Attr(1, "Columns of bins.").greater_than(0)
    expected_kernel_type = dtype_of("X")

    def infer_shape(ctx: InferShapeContext) -> None:
        ctx.set_dim("Out", _output_dims(ctx))


class PrroiPoolGrad(
    GradOpDef,
    of=PrroiPool,
    reads="X Out ROIs BatchRoINums Out@GRAD",
    grads_of="X ROIs",
    dims={"Out@GRAD": _output_dims},
):
    """X@GRAD has each pixel's share of the integrals; ROIs@GRAD how the means change as sides of the bins move."""

    expected_kernel_type = dtype_of("X")
