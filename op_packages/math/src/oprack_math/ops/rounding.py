"""Definitions of ops that give whole numbers."""

from __future__ import annotations

from oprack.op import GradOpDef, InferShapeContext, Input, OpDef, Output, empty_grad
from oprack.op.sbp import binary

from oprack_math.ops._broadcast import broadcast_last
from oprack_math.ops._unary import Activation


# ceil and its gradient.
class Ceil(Activation, type="ceil"):
    r"""$$Out = \lceil X \rceil$$"""


class CeilGrad(GradOpDef, of=Ceil, like="Out@GRAD"):
    r"""$$X@GRAD = 0$$"""

    make_grad = empty_grad
    inplace = {"Out@GRAD": "X@GRAD"}


# floor and its gradient.
class Floor(Activation, type="floor"):
    r"""$$Out = \lfloor X \rfloor$$"""


class FloorGrad(GradOpDef, of=Floor, like="Out@GRAD"):
    r"""$$X@GRAD = 0$$"""

    make_grad = empty_grad
    inplace = {"Out@GRAD": "X@GRAD"}


class Nextafter(OpDef, type="nextafter"):
    r"""$$out = x \pm \epsilon(x)$$ the number of the dtype that follows x towards y; y where both are equal."""

    x = Input("Tensor of any shape.")
    y = Input("Tensor whose shape broadcasts with x's.")
    out = Output("The broadcast shape, LoD of x.")
    make_grad = empty_grad
    sbp = binary(slots=("x", "y", "out"))

    def infer_shape(ctx: InferShapeContext) -> None:
        broadcast_last(ctx, "x", "y", "out")


# round and its gradient.
class Round(Activation, type="round"):
    r"""$$Out = \operatorname{sign}(X) \lfloor |X| + 0.5 \rfloor$$

    The nearest integer; halves go away from zero: 2.5 gives 3, -2.5 gives -3.
    """


class RoundGrad(GradOpDef, of=Round, like="Out@GRAD"):
    r"""$$X@GRAD = 0$$"""

    make_grad = empty_grad
    inplace = {"Out@GRAD": "X@GRAD"}


# trunc and its gradient.
class Trunc(Activation, type="trunc"):
    r"""$$Out = \operatorname{sign}(X) \lfloor |X| \rfloor$$"""


class TruncGrad(GradOpDef, of=Trunc, like="Out@GRAD"):
    r"""$$X@GRAD = 0$$"""

    make_grad = empty_grad
    inplace = {"Out@GRAD": "X@GRAD"}
