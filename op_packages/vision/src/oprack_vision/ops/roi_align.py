"""roi_align: all of the op but its kernels."""

from __future__ import annotations

from oprack.op import Attr, GradOp, GradOpDef, Input, OpDef, OpVersion, Output, dtype_of

_HEIGHT = Attr(1, "Rows of bins.").greater_than(0)
_WIDTH = Attr(1, "Columns of bins.").greater_than(0)
_SCALE = Attr(1.0, "From coordinates of ROIs to those of X.").greater_than(0.0)
_RATIO = Attr(-1, "Samples per bin and direction; not positive: as many as a bin has pixels.")
_ALIGNED = Attr(False, "Pixel centres lie at 0.5; regions may be smaller than a pixel.")


def _output_dims(ctx):
    x, rois = ctx.require_rank("X", 4), ctx.require_rank("ROIs", 2)
    ctx.require(rois[1] in (4, -1), f"ROIs has shape {list(rois)}; expected [R, 4]")
    return rois[0], x[1], ctx.attr("pooled_height"), ctx.attr("pooled_width")


class RoiAlign(OpDef, type="roi_align"):
    """Mean over each bin of a region of bilinear samples of X."""

    X = Input("Feature maps [N, C, H, W].")
    ROIs = Input("Regions [R, 4] as xmin, ymin, xmax, ymax; LoD or RoisNum tells the image of each.")
    RoisNum = Input("Regions of each image [N], int32.", dispensable=True)
    Out = Output("Pooled features [R, C, pooled_height, pooled_width].")
    pooled_height = _HEIGHT
    pooled_width = _WIDTH
    spatial_scale = _SCALE
    sampling_ratio = _RATIO
    aligned = _ALIGNED
    expected_kernel_type = dtype_of("X")
    versions = (
        OpVersion("roi_align")
        .checkpoint("the unused input RpnRoisLod is gone", ("modify_input", "RpnRoisLod", None))
        .checkpoint("regions per image as a tensor", ("new_input", "RoisNum", None))
        .checkpoint("exact pixel centres", ("new_attr", "aligned", False))
    )

    def infer_shape(ctx):
        ctx.set_dim("Out", _output_dims(ctx))

    def make_grad(fwd):
        return GradOp(
            "roi_align_grad",
            X=fwd.input("X"),
            ROIs=fwd.input("ROIs"),
            RoisNum=fwd.input("RoisNum"),
            Out_grad=fwd.output_grad("Out"),
            X_grad=fwd.input_grad("X"),
            attrs=fwd.attrs,
        )


class RoiAlignGrad(GradOpDef, type="roi_align_grad"):
    """Each bin's gradient is spread over the pixels that its samples read."""

    X = Input("Only its shape is read.")
    ROIs = Input("Regions.")
    RoisNum = Input("Regions of each image.", dispensable=True)
    Out_grad = Input("Gradient of Out.")
    X_grad = Output("Gradient of X, shape of X.")
    pooled_height = _HEIGHT
    pooled_width = _WIDTH
    spatial_scale = _SCALE
    sampling_ratio = _RATIO
    aligned = _ALIGNED
    expected_kernel_type = dtype_of("Out@GRAD")
    no_need_buffer_vars = ("X",)

    def infer_shape(ctx):
        ctx.require_dims("Out@GRAD", _output_dims(ctx), why="what the forward op gives")
        ctx.set_dim("X@GRAD", ctx.dim("X"))
        ctx.share_lod("X", "X@GRAD")
