"""multiclass_nms2: all of the op but its kernels."""

from __future__ import annotations

from oprack.op import InferShapeContext, OpDef, Output, dtype_of, empty_grad

from oprack_detection.ops.nms._multiclass_nms import (
    BACKGROUND_LABEL,
    BOXES,
    KEEP_TOP_K,
    NMS_ETA,
    NMS_THRESHOLD,
    NMS_TOP_K,
    NORMALIZED,
    OUT,
    SCORE_THRESHOLD,
    SCORES,
    infer_nms_types,
    width_of_rows,
)


class MulticlassNms2(OpDef, type="multiclass_nms2"):
    r"""$$kept_c = \{b : score_{c,b} > score\_threshold, \; IoU(b, k) \le nms\_threshold\}$$ for all better k of kept_c.

    As multiclass_nms; with no detection at all Out has no rows, and Index tells where each box came from.
    """

    BBoxes = BOXES
    Scores = SCORES
    Out = OUT
    Index = Output("Position of each box among all boxes [K, 1], int32.", intermediate=True)
    background_label = BACKGROUND_LABEL
    score_threshold = SCORE_THRESHOLD
    nms_top_k = NMS_TOP_K
    nms_threshold = NMS_THRESHOLD
    nms_eta = NMS_ETA
    keep_top_k = KEEP_TOP_K
    normalized = NORMALIZED
    make_grad = empty_grad
    infer_var_type = infer_nms_types("Index")
    expected_kernel_type = dtype_of("Scores")

    def infer_shape(ctx: InferShapeContext) -> None:
        ctx.set_dim("Out", (-1, width_of_rows(ctx)))
        ctx.set_dim("Index", (-1, 1))
        ctx.set_lod_level("Out", 1)
        ctx.set_lod_level("Index", 1)
