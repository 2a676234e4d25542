"""atanh and its gradient."""

from __future__ import annotations

from oprack.op.families import GradFromX

from oprack_math.ops._unary import Activation


class Atanh(Activation, type="atanh"):
    r"""$$Out = \operatorname{artanh} X$$"""


class AtanhGrad(GradFromX, of=Atanh):
    r"""$$X@GRAD = Out@GRAD / (1 - X^2)$$"""
