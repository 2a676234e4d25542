"""matrix_nms: all of the op but its kernel."""

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
    empty_grad,
)
from oprack.types import AttrType


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
