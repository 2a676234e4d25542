"""frobenius_norm and its gradient."""

from __future__ import annotations

from oprack_math.ops._reduce import Reduce, ReduceGradWithOut


class FrobeniusNorm(Reduce, type="frobenius_norm"):
    r"""$$Out = \sqrt{\sum_{dim} X^2}$$"""


class FrobeniusNormGrad(ReduceGradWithOut, of=FrobeniusNorm):
    r"""$$X@GRAD = Out@GRAD \cdot X / (Out + 10^{-12})$$"""
