"""retinanet_detection_output: all of the op but its kernel."""

from __future__ import annotations

from oprack.op import REQUIRED, Attr, InferShapeContext, Input, OpDef, Output, dtype_of, empty_grad
from oprack.types import AttrType

from oprack_detection.ops.nms._multiclass_nms import NMS_THRESHOLD


class RetinanetDetectionOutput(OpDef, type="retinanet_detection_output"):
    r"""$$kept_c = \{b : IoU(b, k) \le nms\_threshold\}$$ for all better k of kept_c, from the nms_top_k best boxes
    above score_threshold of each level

    Boxes are decoded from their anchors and clipped to the image, at its own size; of all classes the keep_top_k best
    stay. The last level has no threshold, so that something is found.
    """

    BBoxes = Input("Codes of each level [N, anchors, 4].", duplicable=True)
    Scores = Input("Scores of each level [N, anchors, classes].", duplicable=True)
    Anchors = Input("Anchors of each level [anchors, 4] in pixels.", duplicable=True)
    ImInfo = Input("Height, width and scale of each image [N, 3].")
    Out = Output("Rows of label (from 1 on), score and box [K, 6], best first; LoD: those of each image.")
    score_threshold = Attr(REQUIRED, "Boxes with this score or less are dropped.", type=AttrType.FLOAT)
    nms_top_k = Attr(REQUIRED, "Best boxes of each level that enter the suppression; -1: all.", type=AttrType.INT)
    nms_threshold = Attr(REQUIRED, NMS_THRESHOLD.doc, type=AttrType.FLOAT)
    nms_eta = Attr(
        REQUIRED, "Below 1: the threshold shrinks by it after each kept box while above 0.5.", type=AttrType.FLOAT
    )
    keep_top_k = Attr(REQUIRED, "Detections kept per image; -1: all.", type=AttrType.INT)
    make_grad = empty_grad
    expected_kernel_type = dtype_of("Scores")

    def infer_shape(ctx: InferShapeContext) -> None:
        levels = [ctx.input_count(slot) for slot in ("BBoxes", "Scores", "Anchors")]
        ctx.require(
            len(set(levels)) == 1 and levels[0] > 0,
            f"BBoxes, Scores and Anchors hold {levels} tensors; expected one for each level in all three",
        )
        images = ctx.require_rank("ImInfo", 2)[0]
        for i, scores in enumerate(ctx.dims("Scores")):
            ctx.require(len(scores) == 3, f"Scores[{i}] has shape {list(scores)}; expected [N, anchors, classes]")
            n, anchors, classes = scores
            ctx.require_dims("BBoxes", (n, anchors, 4), i, why="a box for each row of Scores")
            ctx.require_dims("Scores", (images, anchors, classes), i, why="the images of ImInfo")
            ctx.require_dims("Anchors", (anchors, 4), i, why="an anchor for each box")
        ctx.set_dim("Out", (-1, 6))
        ctx.set_lod_level("Out", 1)
