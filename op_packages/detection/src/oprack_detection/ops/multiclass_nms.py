"""multiclass_nms and its successors: all of the ops but their kernels."""

from __future__ import annotations

from oprack.op import REQUIRED, Attr, Input, OpDef, Output, dtype_of, empty_grad
from oprack.types import AttrType

_BOXES = Input(
    "Boxes [N, M, 4], or [M, C, 4] with a box per class and the boxes of each image told by LoD or RoisNum. In the "
    "first form a box may also be a polygon: the x and y of 4, 8, 12 or 16 corners."
)
_NUMBERS = (4, 8, 16, 24, 32)
_SCORES = Input("Scores [N, C, M], or [M, C].")
_OUT = Output("Rows of label, score and the numbers of the box: per image, by class, best first.")
_BACKGROUND = Attr(0, "Class that is left out; -1: none.")
_SCORE = Attr(REQUIRED, "Boxes with this score or less are dropped.", type=AttrType.FLOAT)
_TOP = Attr(REQUIRED, "Best boxes per class that enter the suppression; -1: all.", type=AttrType.INT)
_THRESHOLD = Attr(0.3, "Boxes that overlap a better one by more are dropped.")
_ETA = Attr(1.0, "Below 1: the threshold shrinks by it after each kept box while above 0.5.")
_KEEP = Attr(REQUIRED, "Detections kept per image; -1: all.", type=AttrType.INT)
_NORMALIZED = Attr(True, "false: corners are pixels, so a box is xmax - xmin + 1 wide.")


def _check(ctx):
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


def _infer_types(*counts):
    """A rule: outputs in the slots `counts` hold int32 numbers, where the op has them."""

    def infer(ctx):
        ctx.set_dtype("Out", ctx.dtype("BBoxes"))
        for slot in counts:
            if ctx.has_output(slot):
                ctx.set_dtype(slot, "int32")

    return infer


class MulticlassNms(OpDef, type="multiclass_nms"):
    """Non-maximum suppression per class and image. With no detection at all Out is [[-1]]."""

    BBoxes = _BOXES
    Scores = _SCORES
    Out = _OUT
    background_label = _BACKGROUND
    score_threshold = _SCORE
    nms_top_k = _TOP
    nms_threshold = _THRESHOLD
    nms_eta = _ETA
    keep_top_k = _KEEP
    normalized = _NORMALIZED
    make_grad = empty_grad
    expected_kernel_type = dtype_of("Scores")

    def infer_shape(ctx):
        width = _check(ctx)
        # without a detection Out is one number, which is known at run time only
        ctx.set_dim("Out", (-1, -1 if ctx.is_runtime else width))
        ctx.set_lod_level("Out", 1)


class MulticlassNms2(OpDef, type="multiclass_nms2"):
    """As multiclass_nms; with no detection at all Out has no rows, and Index tells where each box came from."""

    BBoxes = _BOXES
    Scores = _SCORES
    Out = _OUT
    Index = Output("Position of each box among all boxes [K, 1], int32.", intermediate=True)
    background_label = _BACKGROUND
    score_threshold = _SCORE
    nms_top_k = _TOP
    nms_threshold = _THRESHOLD
    nms_eta = _ETA
    keep_top_k = _KEEP
    normalized = _NORMALIZED
    make_grad = empty_grad
    infer_var_type = _infer_types("Index")
    expected_kernel_type = dtype_of("Scores")

    def infer_shape(ctx):
        ctx.set_dim("Out", (-1, _check(ctx)))
        ctx.set_dim("Index", (-1, 1))
        ctx.set_lod_level("Out", 1)
        ctx.set_lod_level("Index", 1)


class MulticlassNms3(OpDef, type="multiclass_nms3"):
    """As multiclass_nms2, with the number of detections per image as a tensor instead of LoD."""

    BBoxes = _BOXES
    Scores = _SCORES
    RoisNum = Input("Boxes of each image [N], int32, for inputs of the second form.", dispensable=True)
    Out = _OUT
    Index = Output("Position of each box among all boxes [K, 1], int32.")
    NmsRoisNum = Output("Detections of each image [N], int32.", dispensable=True)
    score_threshold = _SCORE
    nms_top_k = _TOP
    keep_top_k = _KEEP
    nms_threshold = _THRESHOLD
    normalized = _NORMALIZED
    nms_eta = _ETA
    background_label = _BACKGROUND
    make_grad = empty_grad
    infer_var_type = _infer_types("Index", "NmsRoisNum")
    expected_kernel_type = dtype_of("Scores")

    def infer_shape(ctx):
        ctx.set_dim("Out", (-1, _check(ctx)))
        ctx.set_dim("Index", (-1, 1))
        ctx.set_dim("NmsRoisNum", (-1,))
