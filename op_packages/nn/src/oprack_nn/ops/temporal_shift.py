"""temporal_shift and its gradient: all of the ops but their kernels."""

from __future__ import annotations

from oprack import op
from oprack.op import REQUIRED, Attr, GradOp, GradOpDef, OpDef
from oprack.types import AttrType

from oprack_nn.ops._conv import layout_attr


class _Attrs(OpDef):
    seg_num = Attr(REQUIRED, "Frames T of a video; the batch is N T.", type=AttrType.INT).at_least(1)
    shift_ratio = Attr(0.25, "Share of the channels that moves each way.").between(0.0, 0.5)
    data_format = layout_attr("NCHW")


def _infer(ctx, source, target):
    dims = ctx.require_rank(source, 4)
    ctx.require(
        dims[0] < 0 or dims[0] % ctx.attr("seg_num") == 0,
        f"{source} {list(dims)} has a batch of {dims[0]}; expected a multiple of seg_num {ctx.attr('seg_num')}",
    )
    ctx.set_dim(target, dims)


class TemporalShift(_Attrs, type="temporal_shift"):
    """The first C shift_ratio channels take the previous frame's values, the next as many the next frame's.

    Zeros come in at the ends of each video.
    """

    X = op.Input("[N T, C, H, W], or [N T, H, W, C] with data_format NHWC.")
    Out = op.Output("Shape of X.")

    def infer_shape(ctx):
        _infer(ctx, "X", "Out")
        ctx.share_lod("X", "Out")

    def make_grad(fwd):
        return GradOp(
            "temporal_shift_grad", Out_grad=fwd.output_grad("Out"), X_grad=fwd.input_grad("X"), attrs=fwd.attrs
        )


class TemporalShiftGrad(_Attrs, GradOpDef, type="temporal_shift_grad"):
    """The shifts the other way."""

    Out_grad = op.Input("Shape of Out.")
    X_grad = op.Output("Shape of X.")

    def infer_shape(ctx):
        _infer(ctx, "Out@GRAD", "X@GRAD")
