"""asin and its gradient."""

from __future__ import annotations

from oprack.op.families import GradFromX

from oprack_math.ops._unary import Activation


class Asin(Activation, type="asin"):
    r"""$$Out = \arcsin X$$"""


class AsinGrad(GradFromX, of=Asin):
    r"""$$X@GRAD = Out@GRAD / \sqrt{1 - X^2}$$"""
