"""sin, with gradients to third order."""

from __future__ import annotations

from oprack.op.families import DoubleGradFromX, GradFromX

from oprack_math.ops._unary import Activation
from oprack_math.ops.trigonometric._family import TripleGradFromX


class Sin(Activation, type="sin"):
    r"""$$Out = \sin X$$"""


class SinGrad(GradFromX, of=Sin):
    r"""$$X@GRAD = Out@GRAD \cdot \cos X$$"""


class SinDoubleGrad(DoubleGradFromX, of=SinGrad, type="sin_double_grad"):
    r"""$$grad\_out@GRAD = grad\_x@GRAD \cos X,\quad X@GRAD = -grad\_out \cdot grad\_x@GRAD \sin X$$"""


class SinTripleGrad(TripleGradFromX, of=SinDoubleGrad, type="sin_triple_grad"):
    r"""With $d$ = grad_out_forward, $e$ = grad_x_grad_forward, $a$ = grad_x@GRAD, $b$ = grad_out_grad@GRAD:

    $$X@GRAD = -a e d \cos X - b e \sin X,\quad d@GRAD = -a e \sin X,\quad e@GRAD = b \cos X - a d \sin X$$
    """
