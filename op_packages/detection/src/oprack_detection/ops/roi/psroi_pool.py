"""psroi_pool and its gradient: all of the ops but their kernels."""

from __future__ import annotations

from oprack.op import Attr, GradOpDef, InferShapeContext, Input, OpDef, Output, dtype_of


def _output_dims(ctx: InferShapeContext) -> tuple[int, ...]:
    x, rois = ctx.require_rank("X", 4), ctx.require_rank("ROIs", 2)
    ctx.require(rois[1] in (4, -1), f"ROIs has shape {list(rois)}; expected [R, 4]")
    channels, height, width = (ctx.attr(n) for n in ("output_channels", "pooled_height", "pooled_width"))
    ctx.require(
        x[1] in (-1, channels * height * width),
        f"X has {x[1]} channels; expected output_channels x pooled_height x pooled_width, {[channels, height, width]}",
    )
    return rois[0], channels, height, width


class PsroiPool(OpDef, type="psroi_pool"):
    r"""$$Out_{r,c,i,j} = \operatorname{mean}_{(y, x) \in bin_{r,i,j}} X_{(c H' + i) W' + j, y, x}$$

    The mean over the pixels that bin (i, j) of region r touches, from a channel of the bin's own; 0 for a bin without
    pixels. H' = pooled_height, W' = pooled_width (R-FCN, Dai et al., 2016).
    """

    X = Input("Feature maps [N, output_channels pooled_height pooled_width, H, W].")
    ROIs = Input("Regions [R, 4] as xmin, ymin, xmax, ymax; LoD or RoisNum tells the image of each.")
    RoisNum = Input("Regions of each image [N], int32.", dispensable=True)
    Out = Output("[R, output_channels, pooled_height, pooled_width].")
    pooled_height = Attr(1, "Rows of bins.").greater_than(0)
    pooled_width = Attr(1, "Columns of bins.").greater_than(0)
    output_channels = Attr(1, "Channels of Out.").greater_than(0)
    spatial_scale = Attr(1.0, "From coordinates of ROIs to those of X.").greater_than(0.0)
    expected_kernel_type = dtype_of("X")

    def infer_shape(ctx: InferShapeContext) -> None:
        ctx.set_dim("Out", _output_dims(ctx))


class PsroiPoolGrad(
    GradOpDef, of=PsroiPool, reads="X ROIs RoisNum", shape_of="X", grads_of="X", dims={"Out@GRAD": _output_dims}
):
    """Each bin's gradient is spread evenly over its pixels."""
