"""What both versions of generate_proposals share: slots, attributes, rules."""

from __future__ import annotations

from oprack.op import REQUIRED, Attr, InferShapeContext, InferVarTypeContext, Input, OpDef, Output, empty_grad
from oprack.types import AttrType

ANCHORS = Input("Anchors [H, W, A, 4].")
VARIANCES = Input("Factors of the codes [H, W, A, 4].")


class ProposalsOp(OpDef):
    """Slots, attributes and types of both versions; each adds its input of image sizes, ANCHORS and VARIANCES."""

    Scores = Input("Objectness [N, A, H, W].")
    BboxDeltas = Input("Codes of boxes [N, 4 * A, H, W].")
    RpnRois = Output("Proposals [R, 4], best first per image.")
    RpnRoiProbs = Output("Their objectness [R, 1].")
    RpnRoisNum = Output("Proposals per image [N], int32.", dispensable=True)
    pre_nms_topN = Attr(REQUIRED, "Best boxes that are decoded; not positive: all.", type=AttrType.INT)
    post_nms_topN = Attr(REQUIRED, "Proposals kept per image; not positive: all.", type=AttrType.INT)
    nms_thresh = Attr(REQUIRED, "Boxes that overlap a better one by more are dropped.", type=AttrType.FLOAT)
    min_size = Attr(REQUIRED, "Smaller boxes are dropped.", type=AttrType.FLOAT)
    eta = Attr(REQUIRED, "Below 1: the threshold shrinks by it while above 0.5.", type=AttrType.FLOAT)
    make_grad = empty_grad

    def infer_var_type(ctx: InferVarTypeContext) -> None:
        """Proposals of the dtype of Scores, counts of int32."""
        for slot in ("RpnRois", "RpnRoiProbs"):
            ctx.set_dtype(slot, ctx.dtype("Scores"))
        if ctx.has_output("RpnRoisNum"):
            ctx.set_dtype("RpnRoisNum", "int32")


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
