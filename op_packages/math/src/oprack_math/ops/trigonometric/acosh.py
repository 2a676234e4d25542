"""acosh and its gradient."""

from __future__ import annotations

from oprack.op.families import GradFromX

from oprack_math.ops._unary import Activation


class Acosh(Activation, type="acosh"):
    r"""$$Out = \operatorname{arcosh} X$$"""


class AcoshGrad(GradFromX, of=Acosh):
    r"""$$X@GRAD = Out@GRAD / (\sqrt{X - 1} \sqrt{X + 1})$$"""
