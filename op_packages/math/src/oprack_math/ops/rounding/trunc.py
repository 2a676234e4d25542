"""trunc and its gradient."""

from __future__ import annotations

from oprack.op import GradOpDef

from oprack_math.ops._unary import Activation


class Trunc(Activation, type="trunc"):
    r"""$$Out = \operatorname{sign}(X) \lfloor |X| \rfloor$$"""


class TruncGrad(GradOpDef, of=Trunc, like="Out@GRAD"):
    r"""$$X@GRAD = 0$$"""

    inplace = {"Out@GRAD": "X@GRAD"}
