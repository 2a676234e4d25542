"""lgamma and its gradient."""

from __future__ import annotations

from oprack.op.families import GradFromX, Unary


class Lgamma(Unary, type="lgamma"):
    r"""$$Out = \ln |\Gamma(X)|$$ infinity at 0, -1, -2 ..."""

    inplace = {"X": "Out"}


class LgammaGrad(GradFromX, of=Lgamma):
    r"""$$X@GRAD = Out@GRAD \cdot \psi(X)$$ with $\psi$ as digamma computes it."""
