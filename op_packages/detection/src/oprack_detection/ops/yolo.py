"""Definitions of YOLO."""

from __future__ import annotations

from oprack.op import (
    Attr,
    GradOpDef,
    InferShapeContext,
    InferVarTypeContext,
    Input,
    OpDef,
    OpVersion,
    Output,
    dtype_of,
    empty_grad,
)
from oprack.op.sbp import leading
from oprack.types import AttrType


class YoloBox(OpDef, type="yolo_box"):
    r"""Boxes and scores from a YOLO v3 head: centre $$(\sigma(t_x) s + b + j) / W$$ with $$s = scale\_x\_y$$ and
    $$b = (1 - s) / 2$$, width $$anchor \cdot e^{t_w} / (downsample\_ratio \cdot W)$$, score
    $$\sigma(t_{obj}) \sigma(t_{class})$$; boxes below conf_thresh are 0"""

    X = Input("Head [N, anchors * (5 + class_num), H, W]; with iou_aware anchors more channels go first.")
    ImgSize = Input("Height and width of each image [N, 2], int32.")
    Boxes = Output("Corners in pixels [N, anchors * H * W, 4].")
    Scores = Output("Scores [N, anchors * H * W, class_num].")
    anchors = Attr([], "Width and height of each anchor in pixels.", type=AttrType.INTS).check(
        lambda v: len(v) > 0 and len(v) % 2 == 0, "a list of pairs"
    )
    class_num = Attr(1, "Classes.").greater_than(0)
    conf_thresh = Attr(0.01, "Boxes with a lower objectness are dropped.")
    downsample_ratio = Attr(32, "Pixels per cell.")
    clip_bbox = Attr(True, "Clip boxes to the image.")
    scale_x_y = Attr(1.0, "Stretch of the centre's range.")
    iou_aware = Attr(False, "The head predicts the overlap, too.")
    iou_aware_factor = Attr(0.5, "Exponent of the overlap in the objectness.")
    make_grad = empty_grad
    expected_kernel_type = dtype_of("X")
    versions = OpVersion("yolo_box").checkpoint(
        "heads that predict the overlap", ("new_attr", "iou_aware", False), ("new_attr", "iou_aware_factor", 0.5)
    )

    sbp = leading(("X", "ImgSize"), ("Boxes", "Scores"))

    def infer_shape(ctx: InferShapeContext) -> None:
        dims, image = ctx.require_rank("X", 4), ctx.require_rank("ImgSize", 2)
        count, classes = len(ctx.attr("anchors")) // 2, ctx.attr("class_num")
        channels = count * (5 + classes + bool(ctx.attr("iou_aware")))
        ctx.require(
            dims[1] in (channels, -1),
            f"X has {dims[1]} channels; expected {channels} for {count} anchors and {classes} classes",
        )
        ctx.require(image[1] in (2, -1), f"ImgSize has shape {list(image)}; expected [N, 2]")
        boxes = dims[2] * dims[3] * count if min(dims[2:]) >= 0 else -1
        ctx.set_dim("Boxes", (dims[0], boxes, 4))
        ctx.set_dim("Scores", (dims[0], boxes, classes))


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
