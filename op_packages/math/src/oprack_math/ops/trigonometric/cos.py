"""cos, with gradients to third order."""

from __future__ import annotations

from oprack.op.families import DoubleGradFromX, GradFromX

from oprack_math.ops._unary import Activation
from oprack_math.ops.trigonometric._family import TripleGradFromX


class Cos(Activation, type="cos"):
    r"""$$Out = \cos X$$"""


class CosGrad(GradFromX, of=Cos):
    r"""$$X@GRAD = -Out@GRAD \cdot \sin X$$"""


class CosDoubleGrad(DoubleGradFromX, of=CosGrad, type="cos_double_grad"):
    r"""$$grad\_out@GRAD = -grad\_x@GRAD \sin X,\quad X@GRAD = -grad\_out \cdot grad\_x@GRAD \cos X$$"""


class CosTripleGrad(TripleGradFromX, of=CosDoubleGrad, type="cos_triple_grad"):
    r"""With $d$ = grad_out_forward, $e$ = grad_x_grad_forward, $a$ = grad_x@GRAD, $b$ = grad_out_grad@GRAD:

    $$X@GRAD = a e d \sin X - b e \cos X,\quad d@GRAD = -a e \cos X,\quad e@GRAD = -b \sin X - a d \cos X$$
    """
