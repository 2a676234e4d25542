"""collect_fpn_proposals: all of the op but its kernel."""

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
