"""What both versions of generate_proposals share: slots, attributes, rules."""

from __future__ import annotations

from oprack.op import REQUIRED, Attr, InferShapeContext, InferVarTypeContext, Input, Output
from oprack.types import AttrType

SCORES = Input("Objectness [N, A, H, W].")
DELTAS = Input("Codes of boxes [N, 4 * A, H, W].")
ANCHORS = Input("Anchors [H, W, A, 4].")
VARIANCES = Input("Factors of the codes [H, W, A, 4].")
ROIS = Output("Proposals [R, 4], best first per image.")
PROBS = Output("Their objectness [R, 1].")
ROIS_NUM = Output("Proposals per image [N], int32.", dispensable=True)
PRE_NMS_TOP_N = Attr(REQUIRED, "Best boxes that are decoded; not positive: all.", type=AttrType.INT)
POST_NMS_TOP_N = Attr(REQUIRED, "Proposals kept per image; not positive: all.", type=AttrType.INT)
NMS_THRESH = Attr(REQUIRED, "Boxes that overlap a better one by more are dropped.", type=AttrType.FLOAT)
MIN_SIZE = Attr(REQUIRED, "Smaller boxes are dropped.", type=AttrType.FLOAT)
ETA = Attr(REQUIRED, "Below 1: the threshold shrinks by it while above 0.5.", type=AttrType.FLOAT)


def infer_proposals(ctx: InferShapeContext, image_slot: str, image_numbers: int) -> None:
    """The rule of shapes; image_numbers: how many the input `image_slot` holds for each image."""
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


def infer_proposal_types(ctx: InferVarTypeContext) -> None:
    """Proposals of the dtype of Scores, counts of int32."""
    for slot in ("RpnRois", "RpnRoiProbs"):
        ctx.set_dtype(slot, ctx.dtype("Scores"))
    if ctx.has_output("RpnRoisNum"):
        ctx.set_dtype("RpnRoisNum", "int32")
