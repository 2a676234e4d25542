"""generate_proposals and generate_proposals_v2: all of the ops but their kernels."""

from __future__ import annotations

from oprack.op import REQUIRED, Attr, Input, OpDef, OpVersion, Output, empty_grad
from oprack.types import AttrType

_SCORES = Input("Objectness [N, A, H, W].")
_DELTAS = Input("Codes of boxes [N, 4 * A, H, W].")
_ANCHORS = Input("Anchors [H, W, A, 4].")
_VARIANCES = Input("Factors of the codes [H, W, A, 4].")
_ROIS = Output("Proposals [R, 4], best first per image.")
_PROBS = Output("Their objectness [R, 1].")
_NUM = Output("Proposals per image [N], int32.", dispensable=True)
_PRE = Attr(REQUIRED, "Best boxes that are decoded; not positive: all.", type=AttrType.INT)
_POST = Attr(REQUIRED, "Proposals kept per image; not positive: all.", type=AttrType.INT)
_THRESH = Attr(REQUIRED, "Boxes that overlap a better one by more are dropped.", type=AttrType.FLOAT)
_MIN_SIZE = Attr(REQUIRED, "Smaller boxes are dropped.", type=AttrType.FLOAT)
_ETA = Attr(REQUIRED, "Below 1: the threshold shrinks by it while above 0.5.", type=AttrType.FLOAT)


def _infer_shape(ctx, image_slot, image_numbers):
    scores, deltas = ctx.require_rank("Scores", 4), ctx.require_rank("BboxDeltas", 4)
    ctx.require(
        deltas[1] == 4 * scores[1] or -1 in (scores[1], deltas[1]),
        f"Scores has shape {list(scores)} and BboxDeltas {list(deltas)}; expected 4 codes per score",
    )
    info = ctx.require_rank(image_slot, 2)
    ctx.require(info[1] in (image_numbers, -1), f"{image_slot} has shape {list(info)}; expected [N, {image_numbers}]")
    ctx.same_dims("Anchors", "Variances")
    ctx.set_dim("RpnRois", (-1, 4))
    ctx.set_dim("RpnRoiProbs", (-1, 1))
    ctx.set_dim("RpnRoisNum", (scores[0],))


def _infer_var_type(ctx):
    for slot in ("RpnRois", "RpnRoiProbs"):
        ctx.set_dtype(slot, ctx.dtype("Scores"))
    if ctx.has_output("RpnRoisNum"):
        ctx.set_dtype("RpnRoisNum", "int32")


class GenerateProposals(OpDef, type="generate_proposals"):
    """Proposals of a region network: the best boxes, decoded, clipped, and suppressed. LoD tells the images apart."""

    Scores = _SCORES
    BboxDeltas = _DELTAS
    ImInfo = Input("Height, width and scale of each image [N, 3].")
    Anchors = _ANCHORS
    Variances = _VARIANCES
    RpnRois = _ROIS
    RpnRoiProbs = _PROBS
    RpnRoisNum = _NUM
    pre_nms_topN = _PRE
    post_nms_topN = _POST
    nms_thresh = _THRESH
    min_size = _MIN_SIZE
    eta = _ETA
    make_grad = empty_grad
    infer_var_type = _infer_var_type
    versions = (
        OpVersion("generate_proposals")
        .checkpoint("the unused output RpnRoisLod is gone", ("modify_output", "RpnRoisLod", None))
        .checkpoint("proposals per image as a tensor", ("new_output", "RpnRoisNum", None))
    )

    def infer_shape(ctx):
        _infer_shape(ctx, "ImInfo", 3)
        ctx.set_lod_level("RpnRois", 1)
        ctx.set_lod_level("RpnRoiProbs", 1)


class GenerateProposalsV2(OpDef, type="generate_proposals_v2"):
    """Proposals of a region network: the best boxes, decoded, clipped, and suppressed."""

    Scores = _SCORES
    BboxDeltas = _DELTAS
    ImShape = Input("Height and width of each image [N, 2].")
    Anchors = _ANCHORS
    Variances = _VARIANCES
    RpnRois = _ROIS
    RpnRoiProbs = _PROBS
    RpnRoisNum = _NUM
    pre_nms_topN = _PRE
    post_nms_topN = _POST
    nms_thresh = _THRESH
    min_size = _MIN_SIZE
    eta = _ETA
    pixel_offset = Attr(True, "Corners are pixels, so a box is xmax - xmin + 1 wide.")
    make_grad = empty_grad
    infer_var_type = _infer_var_type
    versions = OpVersion("generate_proposals_v2").checkpoint(
        "boxes may have exact corners", ("new_attr", "pixel_offset", True)
    )

    def infer_shape(ctx):
        _infer_shape(ctx, "ImShape", 2)
