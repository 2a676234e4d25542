"""Definitions of metrics of detectors."""

from __future__ import annotations

from oprack.op import REQUIRED, Attr, InferShapeContext, InferVarTypeContext, Input, OpDef, Output, dtype_of, empty_grad
from oprack.types import AttrType


class DetectionMap(OpDef, type="detection_map"):
    r"""$$MAP = \frac{1}{|C|} \sum_{c \in C} \sum_i P_{c,i} (R_{c,i} - R_{c,i-1})$$, or with ap_type 11point $$\frac{1}
    {11} \sum_{r = 0, 0.1, \dots, 1} \max_{R_{c,i} \ge r} P_{c,i}$$ for each class

    P and R are precision and recall of the i best detections of a class. A detection is right when the box of its class
    that it overlaps most, by more than overlap_threshold, was not found by a better one. C are the classes with boxes
    but background_label; one of them without detections counts as 0. With HasState the counts of earlier batches go on.
    """

    DetectRes = Input("Detections [M, 6] with LoD by image: class, score, xmin, ymin, xmax, ymax.")
    Label = Input("Boxes [N, 6] with LoD: class, difficult, xmin, ymin, xmax, ymax; or [N, 5] without difficult.")
    HasState = Input("int32 [1]; 0: begin anew.", dispensable=True)
    PosCount = Input("Boxes so far [class_num, 1], int32.", dispensable=True)
    TruePos = Input("Scores so far and whether each was right [.., 2], with LoD by class.", dispensable=True)
    FalsePos = Input("The same, and whether each was wrong.", dispensable=True)
    AccumPosCount = Output("Boxes of each class.")
    AccumTruePos = Output("Scores, and 1 where right; LoD by class.")
    AccumFalsePos = Output("Scores, and 1 where wrong; LoD by class.")
    MAP = Output("[1].")
    class_num = Attr(REQUIRED, "Classes.", type=AttrType.INT).greater_than(0)
    background_label = Attr(0, "Class that is left out; -1: none.")
    overlap_threshold = Attr(0.5, "Least intersection over union of a right detection.")
    evaluate_difficult = Attr(True, "Count difficult boxes as well.")
    ap_type = Attr("integral", "How precision is averaged.").in_set(("integral", "11point"))
    make_grad = empty_grad
    expected_kernel_type = dtype_of("DetectRes")

    def infer_shape(ctx: InferShapeContext) -> None:
        for slot in ("DetectRes", "Label"):
            ctx.require_lod(slot)
        ctx.require_dims("DetectRes", (-1, 6), why="class, score and box")
        label = ctx.require_rank("Label", 2)
        ctx.require(label[1] in (5, 6, -1), f"Label has shape {list(label)}; expected [N, 6] or [N, 5]")
        ctx.set_dim("AccumPosCount", (ctx.attr("class_num"), 1))
        for slot in ("AccumTruePos", "AccumFalsePos"):
            ctx.set_dim(slot, (-1, 2))
            ctx.set_lod_level(slot, 1)
        ctx.set_dim("MAP", (1,))

    def infer_var_type(ctx: InferVarTypeContext) -> None:
        ctx.set_dtype("AccumPosCount", "int32")
        for slot in ("AccumTruePos", "AccumFalsePos", "MAP"):
            ctx.set_dtype(slot, ctx.dtype("DetectRes"))
