"""tan and its gradient."""

from __future__ import annotations

from oprack.op.families import GradFromX

from oprack_math.ops._unary import Activation


class Tan(Activation, type="tan"):
    r"""$$Out = \tan X$$"""


class TanGrad(GradFromX, of=Tan):
    r"""$$X@GRAD = Out@GRAD (1 + \tan^2 X)$$"""
