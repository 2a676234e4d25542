"""overlap_add and its gradient."""

from __future__ import annotations

from oprack.op import GradOpDef, InferShapeContext, Input, OpDef, Output

from oprack_fft.ops._frames import AXIS, HOP_LENGTH


class OverlapAdd(OpDef, type="overlap_add"):
    r"""$$Out_t = \sum_{f \cdot hop\_length + j = t} X_{j,f}$$ the sum of frames, each at its place."""

    X = Input("[..., L, F], F frames of L steps, with axis -1, or [F, L, ...] with axis 0.")
    Out = Output("[..., N] or [N, ...] with N = (F - 1) hop_length + L; no LoD.")
    hop_length = HOP_LENGTH
    axis = AXIS

    def infer_shape(ctx: InferShapeContext) -> None:
        dims, hop, axis = tuple(ctx.dim("X")), ctx.attr("hop_length"), ctx.attr("axis")
        ctx.require(len(dims) >= 2, f"X has shape {list(dims)}; expected at least two axes, steps and frames")
        frames, length = dims[:2] if axis == 0 else (dims[-1], dims[-2])
        ctx.require(
            length < 0 or hop <= length,
            f"hop_length is {hop} and the frames of X {list(dims)} have {length} steps; expected frames that meet",
        )
        ctx.require(frames != 0, f"X has shape {list(dims)}; expected one frame at least")
        steps = -1 if min(frames, length) < 0 else (frames - 1) * hop + length
        ctx.set_dim("Out", (steps, *dims[2:]) if axis == 0 else (*dims[:-2], steps))


class OverlapAddGrad(GradOpDef, of=OverlapAdd, reads="X", shape_of="X", linear=True):
    r"""$$X@GRAD_{j,f} = Out@GRAD_{f \cdot hop\_length + j}$$"""
