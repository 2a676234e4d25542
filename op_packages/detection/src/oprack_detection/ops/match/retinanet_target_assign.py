"""retinanet_target_assign: all of the op but its kernel."""

from __future__ import annotations

from oprack.op import Attr, InferShapeContext, InferVarTypeContext, Input, Output

from oprack_detection.ops.match import _anchors as share


class RetinanetTargetAssign(share.AnchorTargetOp, type="retinanet_target_assign"):
    r"""$$positive = \{a : IoU(a, g) \ge positive\_overlap$$ for a box g, or a overlaps a box more than any other
    anchor$$\}, \; negative = \{a : \max_g IoU(a, g) < negative\_overlap\}$$

    What the anchors of RetinaNet learn: all of them, each its box's class (Lin et al., 2017).
    """

    Anchor = share.ANCHOR
    GtBoxes = share.GT_BOXES
    GtLabels = Input("Classes of GtBoxes [G, 1], int32, from 1 on; LoD of GtBoxes.")
    IsCrowd = share.IS_CROWD
    ImInfo = share.IM_INFO
    LocationIndex = share.LOCATION
    ScoreIndex = share.SCORE
    TargetBBox = share.TARGET_BOX
    TargetLabel = share.TARGET_LABEL
    BBoxInsideWeight = share.INSIDE_WEIGHT
    ForegroundNumber = Output("Positive anchors of each image and one more [N, 1], int32.")
    positive_overlap = Attr(0.5, "Overlap from which on an anchor is positive.")
    negative_overlap = Attr(0.4, "Overlap below which an anchor is negative.")

    def infer_shape(ctx: InferShapeContext) -> None:
        share.AnchorTargetOp.infer_shape(ctx)
        ctx.set_dim("ForegroundNumber", (-1, 1))
        ctx.set_lod_level("ForegroundNumber", 1)

    def infer_var_type(ctx: InferVarTypeContext) -> None:
        share.AnchorTargetOp.infer_var_type(ctx)
        ctx.set_dtype("ForegroundNumber", "int32")
