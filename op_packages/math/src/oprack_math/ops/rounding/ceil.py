"""ceil and its gradient."""

from __future__ import annotations

from oprack.op import GradOpDef

from oprack_math.ops._unary import Activation


class Ceil(Activation, type="ceil"):
    r"""$$Out = \lceil X \rceil$$"""


class CeilGrad(GradOpDef, of=Ceil, like="Out@GRAD"):
    r"""$$X@GRAD = 0$$"""

    inplace = {"Out@GRAD": "X@GRAD"}
