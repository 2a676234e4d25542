"""power_spectrogram: all of the op but its kernels."""

from __future__ import annotations

from oprack.op import Attr, GradOpDef, InferShapeContext, Input, OpDef, Output


class PowerSpectrogram(OpDef, type="power_spectrogram"):
    r"""$$Out_{k,t} = \left|\sum_{n=0}^{N-1} X_{t \cdot hop + n} \cdot Window_n \cdot e^{-2 \pi i k n / N}\right|^2$$

    N is the length of Window, k goes from 0 to N / 2, and t over all frames that lie in X whole.
    """

    X = Input("[..., samples], one or several signals.")
    Window = Input("[N], by which each frame is multiplied.")
    Out = Output("[..., N / 2 + 1, frames].")
    hop = Attr(160, "Samples from one frame to the next.").check(lambda v: v > 0, "a positive number of samples")

    def infer_shape(ctx: InferShapeContext) -> None:
        ctx.require_rank("Window", 1)
        *leading, samples = ctx.dim("X")
        (length,) = ctx.dim("Window")
        known = samples >= 0 and length >= 0
        ctx.require(not known or 0 < length <= samples, f"one frame of {length} samples has to lie in X's {samples}")
        frames = 1 + (samples - length) // ctx.attr("hop") if known else -1
        ctx.set_dim("Out", [*leading, length // 2 + 1 if length >= 0 else -1, frames])


class PowerSpectrogramGrad(GradOpDef, of=PowerSpectrogram, reads="X Window"):
    r"""With frames $f = X_{t \cdot hop + n} Window_n$, their transforms S and $g = Out@GRAD$:
    $$f@GRAD_n = 2 \, Re \sum_k g_k S_k e^{2 \pi i k n / N}$$ which goes back to X and Window by the product rule.
    """
