"""digamma and its gradient."""

from __future__ import annotations

from oprack.op.families import GradFromX, Unary


class Digamma(Unary, type="digamma"):
    r"""$$Out = \psi(X) = \Gamma'(X) / \Gamma(X)$$ NaN at 0, -1, -2 ..."""

    inplace = {"X": "Out"}


class DigammaGrad(GradFromX, of=Digamma):
    r"""$$X@GRAD = Out@GRAD \cdot \psi'(X)$$"""
