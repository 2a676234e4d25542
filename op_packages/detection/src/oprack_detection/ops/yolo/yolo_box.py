"""yolo_box: all of the op but its kernel."""

from __future__ import annotations

from oprack.op import Attr, InferShapeContext, Input, OpDef, OpVersion, Output, dtype_of, empty_grad
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
