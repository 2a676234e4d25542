"""stft and its gradient."""

from __future__ import annotations

from oprack.op import REQUIRED, Attr, GradOpDef, InferShapeContext, InferVarTypeContext, Input, OpDef, Output
from oprack.op.sbp import leading
from oprack.types import AttrType, complex_dtype, real_dtype

from oprack_fft.ops._frames import HOP_LENGTH, frame_count


class Stft(OpDef, type="stft"):
    r"""$$Out_{b,k,f} = s \sum_{j=0}^{n\_fft-1} Window_j X_{b,\,f \cdot hop\_length + j}\, e^{-2 \pi i\, jk / n\_fft}$$

    with $s = 1 / \sqrt{n\_fft}$ when `normalized`, and else 1.
    """

    X = Input("Real signals [B, N].")
    Window = Input("[n_fft].")
    Out = Output("Complex [B, K, F] with K = n_fft, or n_fft // 2 + 1 with `onesided`; no LoD.")
    n_fft = Attr(REQUIRED, "Steps of a frame.", type=AttrType.INT).greater_than(0)
    hop_length = HOP_LENGTH
    normalized = Attr(REQUIRED, "Divide by the root of n_fft.", type=AttrType.BOOLEAN)
    onesided = Attr(REQUIRED, "Leave out frequencies above n_fft / 2.", type=AttrType.BOOLEAN)
    sbp = leading(("X",), ("Out",))

    def infer_shape(ctx: InferShapeContext) -> None:
        batch, steps = ctx.require_rank("X", 2)
        size = ctx.attr("n_fft")
        ctx.require_dims("Window", (size,), why="one weight for each of the n_fft steps of a frame")
        frames = frame_count(ctx, steps, size, ctx.attr("hop_length"))
        ctx.set_dim("Out", (batch, size // 2 + 1 if ctx.attr("onesided") else size, frames))

    def infer_var_type(ctx: InferVarTypeContext) -> None:
        ctx.set_dtype("Out", complex_dtype(ctx.dtype("X")))


class StftGrad(GradOpDef, of=Stft, reads="X Window Out@GRAD", shape_of="X", grads_of="X", linear=True):
    r"""$$X@GRAD_{b,t} = \operatorname{Re}\, s \sum_{k,\,f \cdot hop\_length + j = t} Window_j Out@GRAD_{b,k,f}
    e^{2 \pi i\, jk / n\_fft}$$ Window has no gradient, as in Paddle.
    """

    def infer_var_type(ctx: InferVarTypeContext) -> None:
        ctx.set_dtype("X@GRAD", real_dtype(ctx.dtype("Out@GRAD")))
