"""yolov3_loss: all of the op but its kernels."""

from __future__ import annotations

from oprack.op import Attr, GradOp, GradOpDef, Input, OpDef, Output, dtype_of
from oprack.types import AttrType

_ANCHORS = Attr([], "Width and height of each anchor of all heads in pixels.", type=AttrType.INTS)
_MASK = Attr([], "Anchors of this head.", type=AttrType.INTS)
_CLASSES = Attr(1, "Classes.")
_IGNORE = Attr(0.7, "A box that overlaps a true one by more is no negative sample.")
_RATIO = Attr(32, "Pixels per cell.")
_SMOOTH = Attr(True, "Smooth the labels by min(1 / class_num, 1 / 40).")
_SCALE = Attr(1.0, "Stretch of the centre's range, as in yolo_box.")


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
    anchor_mask = _MASK
    class_num = Attr(1, _CLASSES.doc).greater_than(0)
    ignore_thresh = _IGNORE
    downsample_ratio = _RATIO
    use_label_smooth = _SMOOTH
    scale_x_y = _SCALE
    expected_kernel_type = dtype_of("X")

    def infer_shape(ctx):
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

    def infer_var_type(ctx):
        for slot in ("Loss", "ObjectnessMask"):
            ctx.set_dtype(slot, ctx.dtype("X"))
        ctx.set_dtype("GTMatchMask", "int32")

    def make_grad(fwd):
        return GradOp(
            "yolov3_loss_grad",
            X=fwd.input("X"),
            GTBox=fwd.input("GTBox"),
            GTLabel=fwd.input("GTLabel"),
            GTScore=fwd.input("GTScore"),
            ObjectnessMask=fwd.output("ObjectnessMask"),
            GTMatchMask=fwd.output("GTMatchMask"),
            Loss_grad=fwd.output_grad("Loss"),
            X_grad=fwd.input_grad("X"),
            GTBox_grad=fwd.input_grad("GTBox"),
            GTLabel_grad=fwd.input_grad("GTLabel"),
            GTScore_grad=fwd.input_grad("GTScore"),
            attrs=fwd.attrs,
        )


class Yolov3LossGrad(GradOpDef, type="yolov3_loss_grad"):
    """Gradient of X; true boxes, labels and scores get none."""

    X = Input("Head.")
    GTBox = Input("True boxes.")
    GTLabel = Input("Their classes.")
    GTScore = Input("Their weights.", dispensable=True)
    ObjectnessMask = Input("Weight of each cell's box.")
    GTMatchMask = Input("Anchor that each true box belongs to.")
    Loss_grad = Input("Gradient of Loss.")
    X_grad = Output("Gradient of X, shape of X.")
    GTBox_grad = Output("Not computed.")
    GTLabel_grad = Output("Not computed.")
    GTScore_grad = Output("Not computed.")
    anchors = _ANCHORS
    anchor_mask = _MASK
    class_num = _CLASSES
    ignore_thresh = _IGNORE
    downsample_ratio = _RATIO
    use_label_smooth = _SMOOTH
    scale_x_y = _SCALE
    expected_kernel_type = dtype_of("X")

    def infer_shape(ctx):
        ctx.set_dim("X@GRAD", ctx.dim("X"))
        ctx.share_lod("X", "X@GRAD")
        for slot in ("GTBox", "GTLabel", "GTScore"):
            if ctx.has_input(slot):
                ctx.set_dim(slot + "@GRAD", ctx.dim(slot))
