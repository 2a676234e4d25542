"""i0e and its gradient."""

from __future__ import annotations

from oprack_math.ops.special._family import LowerGradWithOut, LowerUnary


class I0e(LowerUnary, type="i0e"):
    r"""$$out = e^{-|x|} I_0(x)$$ which does not overflow."""


class I0eGrad(LowerGradWithOut, of=I0e):
    r"""$$x@GRAD = out@GRAD \cdot (e^{-|x|} I_1(x) - \operatorname{sign}(x) \cdot out)$$"""
