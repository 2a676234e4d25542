"""multiclass_nms3: all of the op but its kernels."""

from __future__ import annotations

from oprack.op import InferShapeContext, Input, Output

from oprack_detection.ops.nms._multiclass_nms import (
    BACKGROUND_LABEL,
    KEEP_TOP_K,
    NMS_ETA,
    NMS_THRESHOLD,
    NMS_TOP_K,
    NORMALIZED,
    SCORE_THRESHOLD,
    NmsOp,
    infer_nms_types,
    width_of_rows,
)


class MulticlassNms3(NmsOp, type="multiclass_nms3"):
    r"""$$kept_c = \{b : score_{c,b} > score\_threshold, \; IoU(b, k) \le nms\_threshold\}$$ for all better k of kept_c.

    As multiclass_nms2, with the number of detections per image as a tensor instead of LoD.
    """

    RoisNum = Input("Boxes of each image [N], int32, for inputs of the second form.", dispensable=True)
    Index = Output("Position of each box among all boxes [K, 1], int32.")
    NmsRoisNum = Output("Detections of each image [N], int32.", dispensable=True)
    score_threshold = SCORE_THRESHOLD
    nms_top_k = NMS_TOP_K
    keep_top_k = KEEP_TOP_K
    nms_threshold = NMS_THRESHOLD
    normalized = NORMALIZED
    nms_eta = NMS_ETA
    background_label = BACKGROUND_LABEL
    infer_var_type = infer_nms_types("Index", "NmsRoisNum")

    def infer_shape(ctx: InferShapeContext) -> None:
        ctx.set_dim("Out", (-1, width_of_rows(ctx)))
        ctx.set_dim("Index", (-1, 1))
        ctx.set_dim("NmsRoisNum", (-1,))
