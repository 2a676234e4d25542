"""yolov3_loss: all of the op but its kernels."""

from __future__ import annotations

from oprack.op import Attr, GradOpDef, InferShapeContext, InferVarTypeContext, Input, OpDef, Output, dtype_of
from oprack.types import AttrType

_ANCHORS = Attr([], "Width and height of each anchor of all heads in pixels.", type=AttrType.INTS)
_CLASSES = Attr(1, "Classes.")


class Yolov3Loss(OpDef, type="yolov3_loss"):
    r"""Loss of a YOLO v3 head per image. A true box belongs to the cell of its centre and the anchor that overlaps it
    most; if that is one of this head: cross entropy of $$\sigma(t_x), \sigma(t_y)$$ and L1 of $$t_w, t_h$$, weighted by
    $$(2 - w h) \cdot score$$, and cross entropy of the classes. All cells: cross entropy of the objectness."""

    X = Input("Head [N, anchors of this head * (5 + class_num), H, W].")
    GTBox = Input("True boxes as centre and size relative to the image [N, B, 4]; of size 0 where there is none.")
    GTLabel = Input("Their classes [N, B], int32.")
    GTScore = Input("Their weights [N, B]; 1 when absent.", dispensable=True)
    Loss = Output("Losses [N].")
    ObjectnessMask = Output("Weight of each cell's box: score, 0 (negative) or -1 (ignored).", intermediate=True)
    GTMatchMask = Output("Anchor of this head that each true box belongs to, -1: none, int32.", intermediate=True)
    anchors = Attr([], _ANCHORS.doc, type=AttrType.INTS).check(lambda v: v and len(v) % 2 == 0, "a list of pairs")
    anchor_mask = Attr([], "Anchors of this head.", type=AttrType.INTS)
    class_num = Attr(1, _CLASSES.doc).greater_than(0)
    ignore_thresh = Attr(0.7, "A box that overlaps a true one by more is no negative sample.")
    downsample_ratio = Attr(32, "Pixels per cell.")
    use_label_smooth = Attr(True, "Smooth the labels by min(1 / class_num, 1 / 40).")
    scale_x_y = Attr(1.0, "Stretch of the centre's range, as in yolo_box.")
    expected_kernel_type = dtype_of("X")

    def infer_shape(ctx: InferShapeContext) -> None:
        x, boxes = ctx.require_rank("X", 4), ctx.require_rank("GTBox", 3)
        mask, classes, count = ctx.attr("anchor_mask"), ctx.attr("class_num"), len(ctx.attr("anchors")) // 2
        ctx.require(
            all(0 <= m < count for m in mask), f"anchor_mask is {mask}; expected indices of the {count} anchors"
        )
        ctx.require(
            x[1] in (len(mask) * (5 + classes), -1),
            f"X has {x[1]} channels; expected {len(mask) * (5 + classes)} for {len(mask)} anchors, {classes} classes",
        )
        ctx.require(boxes[2] in (4, -1), f"GTBox has shape {list(boxes)}; expected [N, B, 4]")
        ctx.set_dim("Loss", (x[0],))
        ctx.set_dim("ObjectnessMask", (x[0], len(mask), x[2], x[3]))
        ctx.set_dim("GTMatchMask", boxes[:2])

    def infer_var_type(ctx: InferVarTypeContext) -> None:
        for slot in ("Loss", "ObjectnessMask"):
            ctx.set_dtype(slot, ctx.dtype("X"))
        ctx.set_dtype("GTMatchMask", "int32")


class Yolov3LossGrad(GradOpDef, of=Yolov3Loss, reads="X GTBox GTLabel GTScore ObjectnessMask GTMatchMask"):
    """Gradient of X; true boxes, labels and scores get none."""

    expected_kernel_type = dtype_of("X")
