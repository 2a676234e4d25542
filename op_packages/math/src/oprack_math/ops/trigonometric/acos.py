"""acos and its gradient."""

from __future__ import annotations

from oprack.op.families import GradFromX

from oprack_math.ops._unary import Activation


class Acos(Activation, type="acos"):
    r"""$$Out = \arccos X$$"""


class AcosGrad(GradFromX, of=Acos):
    r"""$$X@GRAD = -Out@GRAD / \sqrt{1 - X^2}$$"""
