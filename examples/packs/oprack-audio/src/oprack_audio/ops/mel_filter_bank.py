"""mel_filter_bank: all of the op but its kernels."""

from __future__ import annotations

from oprack.op import Attr, GradOpDef, InferShapeContext, Input, OpDef, Output


class MelFilterBank(OpDef, type="mel_filter_bank"):
    r"""$$Out_{m,t} = \sum_k w_{m,k} X_{k,t}$$ with triangles w on the mel scale $mel(f) = 2595 \log_{10}(1 + f / 700)$:
    the corners of triangle m are the mels number m, m + 1 and m + 2 of n_mels + 2 that divide f_min to f_max evenly.
    """

    X = Input("[..., bins, frames], a spectrogram whose bins divide 0 to sample_rate / 2 evenly.")
    Out = Output("[..., n_mels, frames].")
    n_mels = Attr(80, "Number of triangles.").check(lambda v: v > 0, "a positive number")
    sample_rate = Attr(16000.0, "Samples a second.").check(lambda v: v > 0, "a positive number")
    f_min = Attr(0.0, "Lowest frequency, in Hz.").check(lambda v: v >= 0, "a frequency of at least 0")
    f_max = Attr(0.0, "Highest frequency, in Hz; 0 means sample_rate / 2.")

    def infer_shape(ctx: InferShapeContext) -> None:
        low, high = ctx.attr("f_min"), ctx.attr("f_max") or ctx.attr("sample_rate") / 2
        ctx.require(low < high, f"f_min = {low:g} has to lie below f_max = {high:g}")
        ctx.require(len(ctx.dim("X")) >= 2, f"X has shape {list(ctx.dim('X'))}; expected [..., bins, frames]")
        *leading, bins, frames = ctx.dim("X")
        ctx.require(bins < 0 or bins > 1, f"X has {bins} bins; expected at least 2")
        ctx.set_dim("Out", [*leading, ctx.attr("n_mels"), frames])


class MelFilterBankGrad(GradOpDef, of=MelFilterBank, reads="", shape_of="X"):
    r"""$$X@GRAD_{k,t} = \sum_m w_{m,k} Out@GRAD_{m,t}$$"""
