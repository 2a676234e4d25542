"""round and its gradient."""

from __future__ import annotations

from oprack.op import GradOpDef

from oprack_math.ops._unary import Activation


class Round(Activation, type="round"):
    r"""$$Out = \operatorname{sign}(X) \lfloor |X| + 0.5 \rfloor$$

    The nearest integer; halves go away from zero: 2.5 gives 3, -2.5 gives -3.
    """


class RoundGrad(GradOpDef, of=Round, like="Out@GRAD"):
    r"""$$X@GRAD = 0$$"""

    inplace = {"Out@GRAD": "X@GRAD"}
