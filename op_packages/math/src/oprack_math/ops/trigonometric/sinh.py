"""sinh and its gradient."""

from __future__ import annotations

from oprack.op.families import GradFromX

from oprack_math.ops._unary import Activation


class Sinh(Activation, type="sinh"):
    r"""$$Out = \sinh X$$"""


class SinhGrad(GradFromX, of=Sinh):
    r"""$$X@GRAD = Out@GRAD \cdot \cosh X$$"""
