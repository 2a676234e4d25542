"""polygamma and its gradient."""

from __future__ import annotations

from oprack.op import REQUIRED, Attr
from oprack.types import AttrType

from oprack_math.ops.special._family import LowerGrad, LowerUnary


class Polygamma(LowerUnary, type="polygamma"):
    r"""$$out = \psi^{(n)}(x) = (-1)^{n+1} n! \sum_k (x + k)^{-n-1}$$ the derivative of order n of digamma."""

    n = Attr(REQUIRED, "Order of the derivative; 0 is digamma itself.", type=AttrType.INT).at_least(0)
    inplace = {"x": "out"}


class PolygammaGrad(LowerGrad, of=Polygamma):
    r"""$$x@GRAD = out@GRAD \cdot \psi^{(n+1)}(x)$$"""
