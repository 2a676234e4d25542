"""Definitions of proposals of regions."""

from __future__ import annotations

from oprack.op import (
    REQUIRED,
    Attr,
    InferShapeContext,
    InferVarTypeContext,
    Input,
    OpDef,
    OpVersion,
    Output,
    dtype_of,
    empty_grad,
)
from oprack.types import AttrType

# What both versions of generate_proposals share: slots, attributes, rules.
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


class CollectFpnProposals(OpDef, type="collect_fpn_proposals"):
    r"""$$FpnRois = (r \in \bigcup_l MultiLevelRois_l : rank(score_r) \le post\_nms\_topN)$$

    The best regions of all levels of a feature pyramid, by image and from high to low score in each.
    """

    MultiLevelRois = Input("Regions [R_i, 4] of each level; LoD or MultiLevelRoIsNum tells images.", duplicable=True)
    MultiLevelScores = Input("Their scores [R_i, 1].", duplicable=True)
    MultiLevelRoIsNum = Input("Regions of each level per image [N], int32.", duplicable=True, dispensable=True)
    FpnRois = Output("Regions kept [R, 4], with LoD.")
    RoisNum = Output("Regions kept per image [N], int32.", dispensable=True)
    post_nms_topN = Attr(REQUIRED, "Regions kept over all images.", type=AttrType.INT).at_least(0)
    make_grad = empty_grad
    expected_kernel_type = dtype_of("MultiLevelRois")
    versions = OpVersion("collect_fpn_proposals").checkpoint(
        "regions per image as tensors", ("new_input", "MultiLevelRoIsNum", None), ("new_output", "RoisNum", None)
    )

    def infer_shape(ctx: InferShapeContext) -> None:
        rois, scores = ctx.dims("MultiLevelRois"), ctx.dims("MultiLevelScores")
        fits = len(rois) == len(scores) and all(
            len(r) == len(s) == 2 and r[1] in (4, -1) and s[1] in (1, -1) and (r[0] == s[0] or -1 in (r[0], s[0]))
            for r, s in zip(rois, scores, strict=True)
        )
        ctx.require(
            fits,
            f"MultiLevelRois has shapes {[list(r) for r in rois]} and MultiLevelScores {[list(s) for s in scores]}; "
            "expected [R, 4] with [R, 1] for each level",
        )
        ctx.set_dim("FpnRois", (-1, 4))
        ctx.set_lod_level("FpnRois", 1)
        ctx.set_dim("RoisNum", (-1,))

    def infer_var_type(ctx: InferVarTypeContext) -> None:
        ctx.set_dtype("FpnRois", ctx.dtype("MultiLevelRois"))
        if ctx.has_output("RoisNum"):
            ctx.set_dtype("RoisNum", "int32")


class DistributeFpnProposals(OpDef, type="distribute_fpn_proposals"):
    r"""Sends each region to a level of a feature pyramid:
    $$level = \lfloor \log_2(\sqrt{area} / refer\_scale) + refer\_level \rfloor$$, held between min and max"""

    FpnRois = Input("Regions [R, 4]; LoD or RoisNum tells the image of each.")
    RoisNum = Input("Regions of each image [N], int32.", dispensable=True)
    MultiFpnRois = Output("Regions of each level, by image.", duplicable=True)
    RestoreIndex = Output("Position of each region in the levels laid one after another [R, 1], int32.")
    MultiLevelRoIsNum = Output("Regions of each level per image [N], int32.", duplicable=True, dispensable=True)
    min_level = Attr(REQUIRED, "Level of the smallest regions.", type=AttrType.INT)
    max_level = Attr(REQUIRED, "Level of the largest regions.", type=AttrType.INT)
    refer_level = Attr(REQUIRED, "Level of a region of side refer_scale.", type=AttrType.INT)
    refer_scale = Attr(REQUIRED, "Side of a region of refer_level.", type=AttrType.INT).greater_than(0)
    pixel_offset = Attr(True, "Corners are pixels, so a region is xmax - xmin + 1 wide.")
    make_grad = empty_grad
    expected_kernel_type = dtype_of("FpnRois")
    versions = (
        OpVersion("distribute_fpn_proposals")
        .checkpoint(
            "regions per image as tensors", ("new_input", "RoisNum", None), ("new_output", "MultiLevelRoIsNum", None)
        )
        .checkpoint("regions may have exact corners", ("new_attr", "pixel_offset", True))
    )

    def infer_shape(ctx: InferShapeContext) -> None:
        rois = ctx.require_rank("FpnRois", 2)
        ctx.require(rois[1] in (4, -1), f"FpnRois has shape {list(rois)}; expected [R, 4]")
        low, high = ctx.attr("min_level"), ctx.attr("max_level")
        levels = high - low + 1
        ctx.require(
            levels > 0 and ctx.output_count("MultiFpnRois") == levels,
            f"MultiFpnRois has {ctx.output_count('MultiFpnRois')} outputs, but min_level is {low} and max_level {high}",
        )
        for i in range(levels):
            ctx.set_dim("MultiFpnRois", (-1, 4), i)
            ctx.set_lod_level("MultiFpnRois", 1, i)
        for i in range(ctx.output_count("MultiLevelRoIsNum")):
            ctx.set_dim("MultiLevelRoIsNum", ctx.dim("RoisNum") if ctx.has_input("RoisNum") else (-1,), i)
        ctx.set_dim("RestoreIndex", (rois[0], 1))

    def infer_var_type(ctx: InferVarTypeContext) -> None:
        ctx.set_dtype("MultiFpnRois", ctx.dtype("FpnRois"))
        ctx.set_dtype("RestoreIndex", "int32")
        if ctx.has_output("MultiLevelRoIsNum"):
            ctx.set_dtype("MultiLevelRoIsNum", "int32")


class GenerateProposals(ProposalsOp, type="generate_proposals"):
    r"""$$c = v_c \delta_c s_a + c_a, \quad s = e^{\min(v_s \delta_s, \log(1000/16))} s_a$$

    Proposals of a region network (Ren et al., 2015): BboxDeltas d and Variances v give the centre c and size s of each
    box from those of its anchor. Of the pre_nms_topN best boxes, clipped to the image and not smaller than min_size,
    one is kept when it overlaps no better one that is kept by more than nms_thresh; post_nms_topN of them at most. LoD
    tells the images apart.
    """

    ImInfo = Input("Height, width and scale of each image [N, 3].")
    Anchors = ANCHORS
    Variances = VARIANCES
    versions = (
        OpVersion("generate_proposals")
        .checkpoint("the unused output RpnRoisLod is gone", ("delete_output", "RpnRoisLod", None))
        .checkpoint("proposals per image as a tensor", ("new_output", "RpnRoisNum", None))
    )

    def infer_shape(ctx: InferShapeContext) -> None:
        infer_proposals(ctx, "ImInfo", 3)
        ctx.set_lod_level("RpnRois", 1)
        ctx.set_lod_level("RpnRoiProbs", 1)


class GenerateProposalsV2(ProposalsOp, type="generate_proposals_v2"):
    r"""$$c = v_c \delta_c s_a + c_a, \quad s = e^{\min(v_s \delta_s, \log(1000/16))} s_a$$

    As generate_proposals, with the sizes of images alone, and exclusive corners without pixel_offset.
    """

    ImShape = Input("Height and width of each image [N, 2].")
    Anchors = ANCHORS
    Variances = VARIANCES
    pixel_offset = Attr(True, "Corners are pixels, so a box is xmax - xmin + 1 wide.")
    versions = OpVersion("generate_proposals_v2").checkpoint(
        "boxes may have exact corners", ("new_attr", "pixel_offset", True)
    )

    def infer_shape(ctx: InferShapeContext) -> None:
        infer_proposals(ctx, "ImShape", 2)
