"""atan and its gradient."""

from __future__ import annotations

from oprack.op.families import GradFromX

from oprack_math.ops._unary import Activation


class Atan(Activation, type="atan"):
    r"""$$Out = \arctan X$$"""


class AtanGrad(GradFromX, of=Atan):
    r"""$$X@GRAD = Out@GRAD / (1 + X^2)$$"""
