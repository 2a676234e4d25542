"""roi_pool: all of the op but its kernels."""

from __future__ import annotations

from oprack.op import Attr, GradOpDef, InferShapeContext, InferVarTypeContext, Input, OpDef, OpVersion, Output, dtype_of


class RoiPool(OpDef, type="roi_pool"):
    r"""$$Out_{r,c,i,j} = \max_{(y, x) \in bin_{i,j}(r)} X_{c,y,x}$$; 0 for an empty bin.

    The corners of region r are rounded to pixels; bin i has the rows from $$\lfloor i h / H' \rfloor$$ to before
    $$\lceil (i + 1) h / H' \rceil$$ of its h, with H' = pooled_height, and columns alike (Fast R-CNN, Girshick, 2015).
    """

    X = Input("Feature maps [N, C, H, W].")
    ROIs = Input("Regions [R, 4] as xmin, ymin, xmax, ymax; LoD or RoisNum tells the image of each.")
    RoisNum = Input("Regions of each image [N], int32.", dispensable=True)
    Out = Output("Pooled features [R, C, pooled_height, pooled_width].")
    Argmax = Output("Position of each maximum in its map, int64; -1 for an empty bin.", intermediate=True)
    pooled_height = Attr(1, "Rows of bins.").greater_than(0)
    pooled_width = Attr(1, "Columns of bins.").greater_than(0)
    spatial_scale = Attr(1.0, "From coordinates of ROIs to those of X.").greater_than(0.0)
    expected_kernel_type = dtype_of("X")
    versions = (
        OpVersion("roi_pool")
        .checkpoint("the unused input RpnRoisLod is gone", ("delete_input", "RpnRoisLod", None))
        .checkpoint("regions per image as a tensor", ("new_input", "RoisNum", None))
    )

    def infer_shape(ctx: InferShapeContext) -> None:
        x, rois = ctx.require_rank("X", 4), ctx.require_rank("ROIs", 2)
        ctx.require(rois[1] in (4, -1), f"ROIs has shape {list(rois)}; expected [R, 4]")
        for slot in ("Out", "Argmax"):
            ctx.set_dim(slot, (rois[0], x[1], ctx.attr("pooled_height"), ctx.attr("pooled_width")))

    def infer_var_type(ctx: InferVarTypeContext) -> None:
        ctx.set_dtype("Out", ctx.dtype("X"))
        ctx.set_dtype("Argmax", "int64")


class RoiPoolGrad(GradOpDef, of=RoiPool, reads="ROIs RoisNum Argmax", shape_of="X", grads_of="X"):
    """Each bin's gradient goes to its maximum."""
