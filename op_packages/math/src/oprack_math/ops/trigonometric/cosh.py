"""cosh and its gradient."""

from __future__ import annotations

from oprack.op.families import GradFromX

from oprack_math.ops._unary import Activation


class Cosh(Activation, type="cosh"):
    r"""$$Out = \cosh X$$"""


class CoshGrad(GradFromX, of=Cosh):
    r"""$$X@GRAD = Out@GRAD \cdot \sinh X$$"""
