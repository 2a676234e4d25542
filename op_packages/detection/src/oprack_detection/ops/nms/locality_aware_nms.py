"""locality_aware_nms: all of the op but its kernel."""

from __future__ import annotations

from oprack.op import Attr, InferShapeContext, Input, OpDef, Output, dtype_of, empty_grad

from oprack_detection.ops.nms import _multiclass_nms as share


class LocalityAwareNms(OpDef, type="locality_aware_nms"):
    r"""$$b_j = \frac{s_i b_i + s_j b_j}{s_i + s_j}, \; s_j = s_i + s_j$$ for neighbours i, j in their order with
    $$IoU(b_i, b_j) > nms\_threshold$$, and then multiclass_nms of what is left

    Boxes, or polygons, of one text line are merged row by row before they are suppressed (EAST, Zhou et al., 2017).
    With no detection at all Out is [[-1]].
    """

    BBoxes = Input("Boxes [N, M, 4], or polygons [N, M, 8, 16, 24 or 32]: the x and y of their corners.")
    Scores = Input("Scores [N, classes, M].")
    Out = Output("Rows of label, score and the numbers of the box; LoD: those of each image.")
    background_label = Attr(-1, "Class that is left out; -1: none.")
    score_threshold = share.SCORE_THRESHOLD
    nms_top_k = share.NMS_TOP_K
    nms_threshold = share.NMS_THRESHOLD
    nms_eta = share.NMS_ETA
    keep_top_k = share.KEEP_TOP_K
    normalized = share.NORMALIZED
    make_grad = empty_grad
    expected_kernel_type = dtype_of("Scores")

    def infer_shape(ctx: InferShapeContext) -> None:
        ctx.require_rank("Scores", 3)
        width = share.width_of_rows(ctx)
        # without a detection Out is one number, which is known at run time only
        ctx.set_dim("Out", (-1, -1 if ctx.is_runtime else width))
        ctx.set_lod_level("Out", 1)
