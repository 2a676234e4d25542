"""rpn_target_assign: all of the op but its kernel."""

from __future__ import annotations

from oprack.op import REQUIRED, Attr
from oprack.types import AttrType

from oprack_detection.ops.match import _anchors as share


class RpnTargetAssign(share.AnchorTargetOp, type="rpn_target_assign"):
    r"""$$positive = \{a : IoU(a, g) \ge rpn\_positive\_overlap$$ for a box g, or a overlaps a box more than any other
    anchor$$\}, \; negative = \{a : \max_g IoU(a, g) < rpn\_negative\_overlap\}$$

    What the anchors of a region proposal net learn: rpn_batch_size_per_im anchors of each image, of which at most
    rpn_fg_fraction are positive (Faster R-CNN, Ren et al., 2015).
    """

    Anchor = share.ANCHOR
    GtBoxes = share.GT_BOXES
    IsCrowd = share.IS_CROWD
    ImInfo = share.IM_INFO
    LocationIndex = share.LOCATION
    ScoreIndex = share.SCORE
    TargetBBox = share.TARGET_BOX
    TargetLabel = share.TARGET_LABEL
    BBoxInsideWeight = share.INSIDE_WEIGHT
    rpn_batch_size_per_im = Attr(256, "Anchors of each image that learn.")
    rpn_straddle_thresh = Attr(
        REQUIRED, "Pixels that an anchor may lie outside of the image; below 0: any.", type=AttrType.FLOAT
    )
    rpn_positive_overlap = Attr(0.7, "Overlap from which on an anchor is positive.")
    rpn_negative_overlap = Attr(0.3, "Overlap below which an anchor is negative.")
    rpn_fg_fraction = Attr(0.25, "Most positive anchors, as a share of rpn_batch_size_per_im.")
    use_random = Attr(True, "Draw the anchors; else the first ones learn.")
