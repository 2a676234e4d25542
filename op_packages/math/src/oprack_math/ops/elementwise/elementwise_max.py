"""elementwise_max and its gradient."""

from __future__ import annotations

from oprack.op import GradOpDef

from oprack_math.ops.elementwise._family import Elementwise


class ElementwiseMax(Elementwise, type="elementwise_max"):
    r"""$$Out = X \text{ where } X > Y, \text{ else } Y$$ so that a NaN in X loses and one in Y wins."""


class ElementwiseMaxGrad(GradOpDef, of=ElementwiseMax, reads="Out@GRAD X Y"):
    r"""$$X@GRAD = Out@GRAD \cdot [X > Y],\quad Y@GRAD = Out@GRAD \cdot [X \le Y]$$"""
