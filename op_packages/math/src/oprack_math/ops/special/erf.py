"""erf and its gradient."""

from __future__ import annotations

from oprack.op.families import GradFromX, Unary


class Erf(Unary, type="erf"):
    r"""$$Out = \frac{2}{\sqrt\pi} \int_0^X e^{-t^2} dt$$"""

    inplace = {"X": "Out"}


class ErfGrad(GradFromX, of=Erf):
    r"""$$X@GRAD = Out@GRAD \cdot \frac{2}{\sqrt\pi} e^{-X^2}$$"""

    inplace = {}
