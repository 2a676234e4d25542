"""rsqrt, with gradients to second order."""

from __future__ import annotations

from oprack.op.families import GradFromOut

from oprack_math.ops._unary import Activation
from oprack_math.ops.power._family import DoubleGradFromOut


class Rsqrt(Activation, type="rsqrt"):
    r"""$$Out = 1/\sqrt{X}$$"""


class RsqrtGrad(GradFromOut, of=Rsqrt):
    r"""$$X@GRAD = -\tfrac12 Out@GRAD \cdot Out^3$$"""


class RsqrtGradGrad(DoubleGradFromOut, of=RsqrtGrad):
    r"""$$grad\_out@GRAD = -\tfrac12 grad\_x@GRAD \cdot Out^3,\quad Out@GRAD = 3\,grad\_x \cdot grad\_x@GRAD / Out$$"""
