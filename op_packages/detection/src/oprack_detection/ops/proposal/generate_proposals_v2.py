"""generate_proposals_v2: all of the op but its kernels."""

from __future__ import annotations

from oprack.op import Attr, InferShapeContext, Input, OpDef, OpVersion, empty_grad

from oprack_detection.ops.proposal._generate_proposals import (
    ANCHORS,
    DELTAS,
    ETA,
    MIN_SIZE,
    NMS_THRESH,
    POST_NMS_TOP_N,
    PRE_NMS_TOP_N,
    PROBS,
    ROIS,
    ROIS_NUM,
    SCORES,
    VARIANCES,
    infer_proposal_types,
    infer_proposals,
)


class GenerateProposalsV2(OpDef, type="generate_proposals_v2"):
    r"""$$c = v_c \delta_c s_a + c_a, \quad s = e^{\min(v_s \delta_s, \log(1000/16))} s_a$$

    As generate_proposals, with the sizes of images alone, and exclusive corners without pixel_offset.
    """

    Scores = SCORES
    BboxDeltas = DELTAS
    ImShape = Input("Height and width of each image [N, 2].")
    Anchors = ANCHORS
    Variances = VARIANCES
    RpnRois = ROIS
    RpnRoiProbs = PROBS
    RpnRoisNum = ROIS_NUM
    pre_nms_topN = PRE_NMS_TOP_N
    post_nms_topN = POST_NMS_TOP_N
    nms_thresh = NMS_THRESH
    min_size = MIN_SIZE
    eta = ETA
    pixel_offset = Attr(True, "Corners are pixels, so a box is xmax - xmin + 1 wide.")
    make_grad = empty_grad
    infer_var_type = infer_proposal_types
    versions = OpVersion("generate_proposals_v2").checkpoint(
        "boxes may have exact corners", ("new_attr", "pixel_offset", True)
    )

    def infer_shape(ctx: InferShapeContext) -> None:
        infer_proposals(ctx, "ImShape", 2)
