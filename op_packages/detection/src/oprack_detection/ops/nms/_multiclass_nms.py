"""What the versions of multiclass_nms share: slots, attributes, rules."""

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
    Output,
    dtype_of,
    empty_grad,
)
from oprack.types import AttrType

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
