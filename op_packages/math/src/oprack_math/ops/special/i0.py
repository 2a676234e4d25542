"""i0 and its gradient."""

from __future__ import annotations

from oprack_math.ops.special._family import LowerGrad, LowerUnary


class I0(LowerUnary, type="i0"):
    r"""$$out = I_0(x) = \sum_k \frac{(x^2/4)^k}{(k!)^2}$$ the modified Bessel function of the first kind, order 0."""

    inplace = {"x": "out"}


class I0Grad(LowerGrad, of=I0):
    r"""$$x@GRAD = out@GRAD \cdot I_1(x)$$"""
