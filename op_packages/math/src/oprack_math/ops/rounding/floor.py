"""floor and its gradient."""

from __future__ import annotations

from oprack.op import GradOpDef

from oprack_math.ops._unary import Activation


class Floor(Activation, type="floor"):
    r"""$$Out = \lfloor X \rfloor$$"""


class FloorGrad(GradOpDef, of=Floor, like="Out@GRAD"):
    r"""$$X@GRAD = 0$$"""

    inplace = {"Out@GRAD": "X@GRAD"}
