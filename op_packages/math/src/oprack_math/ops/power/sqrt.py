"""sqrt, with gradients to second order."""

from __future__ import annotations

from oprack.op.families import GradFromOut

from oprack_math.ops._unary import Activation
from oprack_math.ops.power._family import DoubleGradFromOut


class Sqrt(Activation, type="sqrt"):
    r"""$$Out = \sqrt{X}$$ X may be SelectedRows."""


class SqrtGrad(GradFromOut, of=Sqrt):
    r"""$$X@GRAD = Out@GRAD / (2\,Out)$$"""


class SqrtGradGrad(DoubleGradFromOut, of=SqrtGrad):
    r"""$$grad\_out@GRAD = grad\_x@GRAD / (2\,Out),\quad Out@GRAD = -grad\_x \cdot grad\_x@GRAD / Out$$"""
