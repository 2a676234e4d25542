"""asinh and its gradient."""

from __future__ import annotations

from oprack.op.families import GradFromX

from oprack_math.ops._unary import Activation


class Asinh(Activation, type="asinh"):
    r"""$$Out = \operatorname{arsinh} X$$"""


class AsinhGrad(GradFromX, of=Asinh):
    r"""$$X@GRAD = Out@GRAD / \sqrt{1 + X^2}$$"""
