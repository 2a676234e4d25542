"""multiclass_nms: all of the op but its kernels."""

from __future__ import annotations

from oprack.op import InferShapeContext

from oprack_detection.ops.nms._multiclass_nms import NmsAttrs, width_of_rows


class MulticlassNms(NmsAttrs, type="multiclass_nms"):
    r"""$$kept_c = \{b : score_{c,b} > score\_threshold, \; IoU(b, k) \le nms\_threshold\}$$ for all better k of kept_c

    and each class c but the background, from at most nms_top_k boxes; of all classes the keep_top_k best of an image.
    With no detection at all Out is [[-1]].
    """

    def infer_shape(ctx: InferShapeContext) -> None:
        width = width_of_rows(ctx)
        # without a detection Out is one number, which is known at run time only
        ctx.set_dim("Out", (-1, -1 if ctx.is_runtime else width))
        ctx.set_lod_level("Out", 1)
