"""nms: all of the op but its kernel."""

from __future__ import annotations

from oprack.op import Attr, InferShapeContext, InferVarTypeContext, Input, OpDef, Output, empty_grad


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
