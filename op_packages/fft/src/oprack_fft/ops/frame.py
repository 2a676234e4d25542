"""frame and its gradient."""

from __future__ import annotations

from oprack.op import REQUIRED, Attr, GradOpDef, InferShapeContext, Input, OpDef, Output
from oprack.op.sbp import leading
from oprack.types import AttrType

from oprack_fft.ops._frames import AXIS, HOP_LENGTH, frame_count


class Frame(OpDef, type="frame"):
    r"""$$Out_{j,f} = X_{f \cdot hop\_length + j}$$ for $j < frame\_length$, and for all frames $f$ that fit into X."""

    X = Input("[..., N] with axis -1, or [N, ...] with axis 0.")
    Out = Output("[..., frame_length, F], or [F, frame_length, ...]; no LoD.")
    frame_length = Attr(REQUIRED, "Steps of a frame.", type=AttrType.INT).greater_than(0)
    hop_length = HOP_LENGTH
    axis = AXIS
    sbp = leading(("X",), ("Out",))

    def infer_shape(ctx: InferShapeContext) -> None:
        dims, length, axis = tuple(ctx.dim("X")), ctx.attr("frame_length"), ctx.attr("axis")
        ctx.require(len(dims) > 0, "X has no axes; expected one at least, time")
        frames = frame_count(ctx, dims[axis], length, ctx.attr("hop_length"))
        ctx.set_dim("Out", (frames, length, *dims[1:]) if axis == 0 else (*dims[:-1], length, frames))


class FrameGrad(GradOpDef, of=Frame, reads="X", shape_of="X", linear=True):
    r"""$$X@GRAD_t = \sum_{f \cdot hop\_length + j = t} Out@GRAD_{j,f}$$"""
