"""temporal_shift and its gradient: all of the ops but their kernels."""

from __future__ import annotations

from oprack import op
from oprack.op import REQUIRED, Attr, GradOpDef, InferShapeContext, OpDef
from oprack.types import AttrType

from oprack_nn.ops._layout import layout_attr


def _infer(ctx: InferShapeContext, source: str, target: str) -> None:
    dims = ctx.require_rank(source, 4)
    ctx.require(
        dims[0] < 0 or dims[0] % ctx.attr("seg_num") == 0,
        f"{source} {list(dims)} has a batch of {dims[0]}; expected a multiple of seg_num {ctx.attr('seg_num')}",
    )
    ctx.set_dim(target, dims)


class TemporalShift(OpDef, type="temporal_shift"):
    r"""$$Out_{t,c} = X_{t-1,c}$$ for $$c < C r$$, $$X_{t+1,c}$$ for $$C r \le c < 2 C r$$, else $$X_{t,c}$$, with r =
    shift_ratio.

    Zeros come in at the ends of each video (TSM, Lin et al., 2019).
    """

    X = op.Input("[N T, C, H, W], or [N T, H, W, C] with data_format NHWC.")
    Out = op.Output("Shape of X.")
    seg_num = Attr(REQUIRED, "Frames T of a video; the batch is N T.", type=AttrType.INT).at_least(1)
    shift_ratio = Attr(0.25, "Share of the channels that moves each way.").between(0.0, 0.5)
    data_format = layout_attr("NCHW")

    def infer_shape(ctx: InferShapeContext) -> None:
        _infer(ctx, "X", "Out")
        ctx.share_lod("X", "Out")


class TemporalShiftGrad(GradOpDef, of=TemporalShift, linear=True):
    """The shifts the other way."""

    def infer_shape(ctx: InferShapeContext) -> None:
        _infer(ctx, "Out@GRAD", "X@GRAD")
