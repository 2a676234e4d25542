"""erfinv and its gradient."""

from __future__ import annotations

from oprack.op.families import GradFromOut, Unary


class Erfinv(Unary, type="erfinv"):
    r"""$$\operatorname{erf}(Out) = X$$ NaN beyond [-1, 1]."""

    inplace = {"X": "Out"}


class ErfinvGrad(GradFromOut, of=Erfinv):
    r"""$$X@GRAD = Out@GRAD \cdot \frac{\sqrt\pi}{2} e^{Out^2}$$"""
