"""multiclass_nms2: all of the op but its kernels."""

from __future__ import annotations

from oprack.op import InferShapeContext, Output

from oprack_detection.ops.nms._multiclass_nms import NmsAttrs, infer_nms_types, width_of_rows


class MulticlassNms2(NmsAttrs, type="multiclass_nms2"):
    r"""$$kept_c = \{b : score_{c,b} > score\_threshold, \; IoU(b, k) \le nms\_threshold\}$$ for all better k of kept_c.

    As multiclass_nms; with no detection at all Out has no rows, and Index tells where each box came from.
    """

    Index = Output("Position of each box among all boxes [K, 1], int32.", intermediate=True)
    infer_var_type = infer_nms_types("Index")

    def infer_shape(ctx: InferShapeContext) -> None:
        ctx.set_dim("Out", (-1, width_of_rows(ctx)))
        ctx.set_dim("Index", (-1, 1))
        ctx.set_lod_level("Out", 1)
        ctx.set_lod_level("Index", 1)
