"""i1e and its gradient."""

from __future__ import annotations

from oprack_math.ops.special._family import LowerGradWithOut, LowerUnary


class I1e(LowerUnary, type="i1e"):
    r"""$$out = e^{-|x|} I_1(x)$$ which does not overflow."""


class I1eGrad(LowerGradWithOut, of=I1e):
    r"""$$x@GRAD = out@GRAD \cdot (e^{-|x|} I_0(x) - out \cdot (\operatorname{sign}(x) + 1 / x))$$ and
    $out@GRAD / 2$ at 0."""
