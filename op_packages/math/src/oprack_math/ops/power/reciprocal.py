"""reciprocal and its gradient."""

from __future__ import annotations

from oprack.op.families import GradFromOut

from oprack_math.ops._unary import Activation


class Reciprocal(Activation, type="reciprocal"):
    r"""$$Out = 1/X$$"""


class ReciprocalGrad(GradFromOut, of=Reciprocal):
    r"""$$X@GRAD = -Out@GRAD \cdot Out^2$$"""
