"""Definitions of non-maximum suppression."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

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

# What the versions of multiclass_nms share: slots, attributes, rules.
_NUMBERS = (4, 8, 16, 24, 32)

BACKGROUND_LABEL = Attr(0, "Class that is left out; -1: none.")

SCORE_THRESHOLD = Attr(REQUIRED, "Boxes with this score or less are dropped.", type=AttrType.FLOAT)

NMS_TOP_K = Attr(REQUIRED, "Best boxes per class that enter the suppression; -1: all.", type=AttrType.INT)

NMS_THRESHOLD = Attr(0.3, "Boxes that overlap a better one by more are dropped.")

NMS_ETA = Attr(1.0, "Below 1: the threshold shrinks by it after each kept box while above 0.5.")

KEEP_TOP_K = Attr(REQUIRED, "Detections kept per image; -1: all.", type=AttrType.INT)

NORMALIZED = Attr(True, "false: corners are pixels, so a box is xmax - xmin + 1 wide.")


class NmsOp(OpDef):
    """Slots of multiclass_nms and its versions."""

    BBoxes = Input(
        "Boxes [N, M, 4], or [M, C, 4] with a box per class and the boxes of each image told by LoD or RoisNum. In the "
        "first form a box may also be a polygon: the x and y of 4, 8, 12 or 16 corners."
    )
    Scores = Input("Scores [N, C, M], or [M, C].")
    Out = Output("Rows of label, score and the numbers of the box: per image, by class, best first.")
    make_grad = empty_grad
    expected_kernel_type = dtype_of("Scores")


class NmsAttrs(NmsOp):
    """The attributes in the order of the first two versions."""

    background_label = BACKGROUND_LABEL
    score_threshold = SCORE_THRESHOLD
    nms_top_k = NMS_TOP_K
    nms_threshold = NMS_THRESHOLD
    nms_eta = NMS_ETA
    keep_top_k = KEEP_TOP_K
    normalized = NORMALIZED


def width_of_rows(ctx: InferShapeContext) -> int:
    """Columns of Out; -1 when they are not known. Raises InvalidArgumentError when shapes do not fit."""
    boxes, scores = ctx.require_rank("BBoxes", 3), ctx.require_rank("Scores", 2, 3)
    numbers = _NUMBERS if len(scores) == 3 else (4,)
    ctx.require(
        boxes[2] in (*numbers, -1),
        f"BBoxes has shape {list(boxes)} and Scores {list(scores)}; expected {' or '.join(map(str, numbers))} numbers "
        "per box",
    )
    pairs = ((boxes[1], scores[2]), (boxes[0], scores[0])) if len(scores) == 3 else zip(boxes[:2], scores, strict=True)
    ctx.require(
        all(a == b or -1 in (a, b) for a, b in pairs),
        f"BBoxes has shape {list(boxes)} and Scores {list(scores)}; expected [N, M, 4] with [N, C, M], "
        "or [M, C, 4] with [M, C]",
    )
    return boxes[2] + 2 if boxes[2] >= 0 else -1


def infer_nms_types(*counts: str) -> Callable[..., Any]:
    """A rule: outputs in the slots `counts` hold int32 numbers, where the op has them."""

    def infer(ctx: InferVarTypeContext) -> None:
        ctx.set_dtype("Out", ctx.dtype("BBoxes"))
        for slot in counts:
            if ctx.has_output(slot):
                ctx.set_dtype(slot, "int32")

    return infer


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
    score_threshold = SCORE_THRESHOLD
    nms_top_k = NMS_TOP_K
    nms_threshold = NMS_THRESHOLD
    nms_eta = NMS_ETA
    keep_top_k = KEEP_TOP_K
    normalized = NORMALIZED
    make_grad = empty_grad
    expected_kernel_type = dtype_of("Scores")

    def infer_shape(ctx: InferShapeContext) -> None:
        ctx.require_rank("Scores", 3)
        width = width_of_rows(ctx)
        # without a detection Out is one number, which is known at run time only
        ctx.set_dim("Out", (-1, -1 if ctx.is_runtime else width))
        ctx.set_lod_level("Out", 1)


class MatrixNms(OpDef, type="matrix_nms"):
    r"""Soft suppression without a loop. The score of box i, best first, is multiplied by
    $$\min_{j < i} f(iou_{ij}) / f(\max_{k < j} iou_{kj})$$ with $$f(o) = 1 - o$$, or with use_gaussian
    $$f(o) = e^{-gaussian\_sigma \cdot o^2}$$"""

    BBoxes = Input("Boxes [N, M, 4].")
    Scores = Input("Scores [N, C, M].")
    Out = Output("Rows of label, decayed score, xmin, ymin, xmax, ymax: per image, best first.")
    Index = Output("Position of each box among all boxes [K, 1], int32.")
    RoisNum = Output("Detections of each image [N], int32.", dispensable=True)
    score_threshold = Attr(REQUIRED, "Boxes with this score or less are dropped.", type=AttrType.FLOAT)
    nms_top_k = Attr(REQUIRED, "Best boxes per class that are looked at; -1: all.", type=AttrType.INT)
    keep_top_k = Attr(REQUIRED, "Detections kept per image; -1: all.", type=AttrType.INT)
    post_threshold = Attr(0.0, "Boxes with this decayed score or less are dropped.")
    use_gaussian = Attr(False, "Decay by a Gaussian.")
    gaussian_sigma = Attr(2.0, "Sharpness of the Gaussian.")
    background_label = Attr(0, "Class that is left out; -1: none.")
    normalized = Attr(True, "false: corners are pixels, so a box is xmax - xmin + 1 wide.")
    make_grad = empty_grad
    versions = OpVersion("matrix_nms").checkpoint("detections per image", ("new_output", "RoisNum", None))

    def infer_shape(ctx: InferShapeContext) -> None:
        boxes, scores = ctx.require_rank("BBoxes", 3), ctx.require_rank("Scores", 3)
        fits = boxes[2] in (4, -1) and all(
            a == b or -1 in (a, b) for a, b in ((boxes[0], scores[0]), (boxes[1], scores[2]))
        )
        ctx.require(
            fits, f"BBoxes has shape {list(boxes)} and Scores {list(scores)}; expected [N, M, 4] with [N, C, M]"
        )
        ctx.set_dim("Out", (-1, 6))
        ctx.set_dim("Index", (-1, 1))
        ctx.set_dim("RoisNum", (-1,))

    def infer_var_type(ctx: InferVarTypeContext) -> None:
        ctx.set_dtype("Out", ctx.dtype("BBoxes"))
        for slot in ("Index", "RoisNum"):
            if ctx.has_output(slot):
                ctx.set_dtype(slot, "int32")


class MulticlassNms(NmsAttrs, type="multiclass_nms"):
    r"""$$kept_c = \{b : score_{c,b} > score\_threshold, \; IoU(b, k) \le nms\_threshold\}$$ for all better k of kept_c

    and each class c but the background, from at most nms_top_k boxes; of all classes the keep_top_k best of an image.
    With no detection at all Out is [[-1]].
    """

    def infer_shape(ctx: InferShapeContext) -> None:
        width = width_of_rows(ctx)
        # without a detection Out is one number, which is known at run time only
        ctx.set_dim("Out", (-1, -1 if ctx.is_runtime else width))
        ctx.set_lod_level("Out", 1)


class MulticlassNms2(NmsAttrs, type="multiclass_nms2"):
    r"""$$kept_c = \{b : score_{c,b} > score\_threshold, \; IoU(b, k) \le nms\_threshold\}$$ for all better k of kept_c.

    As multiclass_nms; with no detection at all Out has no rows, and Index tells where each box came from.
    """

    Index = Output("Position of each box among all boxes [K, 1], int32.", intermediate=True)
    infer_var_type = infer_nms_types("Index")

    def infer_shape(ctx: InferShapeContext) -> None:
        ctx.set_dim("Out", (-1, width_of_rows(ctx)))
        ctx.set_dim("Index", (-1, 1))
        ctx.set_lod_level("Out", 1)
        ctx.set_lod_level("Index", 1)


class MulticlassNms3(NmsOp, type="multiclass_nms3"):
    r"""$$kept_c = \{b : score_{c,b} > score\_threshold, \; IoU(b, k) \le nms\_threshold\}$$ for all better k of kept_c.

    As multiclass_nms2, with the number of detections per image as a tensor instead of LoD.
    """

    RoisNum = Input("Boxes of each image [N], int32, for inputs of the second form.", dispensable=True)
    Index = Output("Position of each box among all boxes [K, 1], int32.")
    NmsRoisNum = Output("Detections of each image [N], int32.", dispensable=True)
    score_threshold = SCORE_THRESHOLD
    nms_top_k = NMS_TOP_K
    keep_top_k = KEEP_TOP_K
    nms_threshold = NMS_THRESHOLD
    normalized = NORMALIZED
    nms_eta = NMS_ETA
    background_label = BACKGROUND_LABEL
    infer_var_type = infer_nms_types("Index", "NmsRoisNum")

    def infer_shape(ctx: InferShapeContext) -> None:
        ctx.set_dim("Out", (-1, width_of_rows(ctx)))
        ctx.set_dim("Index", (-1, 1))
        ctx.set_dim("NmsRoisNum", (-1,))


class Nms(OpDef, type="nms"):
    r"""$$kept = \{i : IoU(Boxes_i, Boxes_k) \le iou\_threshold\}$$ for all k < i of kept: boxes come best first"""

    Boxes = Input("Boxes [M, 4] as xmin, ymin, xmax, ymax, best first.")
    KeepBoxesIdxs = Output("Indices of the boxes that are kept, int64.")
    iou_threshold = Attr(1.0, "Boxes that overlap a better one by more are dropped.")
    make_grad = empty_grad

    def infer_shape(ctx: InferShapeContext) -> None:
        boxes = ctx.require_rank("Boxes", 2)
        ctx.require(boxes[1] in (4, -1), f"Boxes has shape {list(boxes)}; expected [M, 4]")
        ctx.set_dim("KeepBoxesIdxs", (-1,))

    def infer_var_type(ctx: InferVarTypeContext) -> None:
        ctx.set_dtype("KeepBoxesIdxs", "int64")


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
