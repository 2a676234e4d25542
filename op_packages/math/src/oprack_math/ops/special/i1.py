"""i1 and its gradient."""

from __future__ import annotations

from oprack_math.ops.special._family import LowerGradWithOut, LowerUnary


class I1(LowerUnary, type="i1"):
    r"""$$out = I_1(x) = \frac x2 \sum_k \frac{(x^2/4)^k}{k!\,(k+1)!}$$ the modified Bessel function of order 1."""


class I1Grad(LowerGradWithOut, of=I1):
    r"""$$x@GRAD = out@GRAD \cdot (I_0(x) - out / x)$$ and $out@GRAD / 2$ at 0."""
