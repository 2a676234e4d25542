"""roi_pool: all of the op but its kernels."""

from __future__ import annotations

from oprack.op import Attr, GradOp, GradOpDef, Input, OpDef, OpVersion, Output, dtype_of

_HEIGHT = Attr(1, "Rows of bins.").greater_than(0)
_WIDTH = Attr(1, "Columns of bins.").greater_than(0)
_SCALE = Attr(1.0, "From coordinates of ROIs to those of X.").greater_than(0.0)


class RoiPool(OpDef, type="roi_pool"):
    """Maximum over each bin of a region, whose corners are rounded to pixels; 0 for an empty bin."""

    X = Input("Feature maps [N, C, H, W].")
    ROIs = Input("Regions [R, 4] as xmin, ymin, xmax, ymax; LoD or RoisNum tells the image of each.")
    RoisNum = Input("Regions of each image [N], int32.", dispensable=True)
    Out = Output("Pooled features [R, C, pooled_height, pooled_width].")
    Argmax = Output("Position of each maximum in its map, int64; -1 for an empty bin.", intermediate=True)
    pooled_height = _HEIGHT
    pooled_width = _WIDTH
    spatial_scale = _SCALE
    expected_kernel_type = dtype_of("X")
    versions = (
        OpVersion("roi_pool")
        .checkpoint("the unused input RpnRoisLod is gone", ("modify_input", "RpnRoisLod", None))
        .checkpoint("regions per image as a tensor", ("new_input", "RoisNum", None))
    )

    def infer_shape(ctx):
        x, rois = ctx.require_rank("X", 4), ctx.require_rank("ROIs", 2)
        ctx.require(rois[1] in (4, -1), f"ROIs has shape {list(rois)}; expected [R, 4]")
        for slot in ("Out", "Argmax"):
            ctx.set_dim(slot, (rois[0], x[1], ctx.attr("pooled_height"), ctx.attr("pooled_width")))

    def infer_var_type(ctx):
        ctx.set_dtype("Out", ctx.dtype("X"))
        ctx.set_dtype("Argmax", "int64")

    def make_grad(fwd):
        return GradOp(
            "roi_pool_grad",
            X=fwd.input("X"),
            ROIs=fwd.input("ROIs"),
            RoisNum=fwd.input("RoisNum"),
            Argmax=fwd.output("Argmax"),
            Out_grad=fwd.output_grad("Out"),
            X_grad=fwd.input_grad("X"),
            attrs=fwd.attrs,
        )


class RoiPoolGrad(GradOpDef, type="roi_pool_grad"):
    """Each bin's gradient goes to its maximum."""

    X = Input("Only its shape is read.")
    ROIs = Input("Regions.")
    RoisNum = Input("Regions of each image.", dispensable=True)
    Argmax = Input("Position of each maximum.")
    Out_grad = Input("Gradient of Out.")
    X_grad = Output("Gradient of X, shape of X.")
    pooled_height = _HEIGHT
    pooled_width = _WIDTH
    spatial_scale = _SCALE
    expected_kernel_type = dtype_of("Out@GRAD")
    no_need_buffer_vars = ("X",)

    def infer_shape(ctx):
        ctx.set_dim("X@GRAD", ctx.dim("X"))
        ctx.share_lod("X", "X@GRAD")
