"""sin, cos and tanh, with gradients to third order."""

from __future__ import annotations

from oprack.op import GradOpDef, Input, Output
from oprack.op.families import (
    DoubleGradFromX,
    GradFromOut,
    GradFromX,
    like,
)

from oprack_math.ops._trigonometric import TripleGrad, TripleGradFromX
from oprack_math.ops._unary import Activation


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


class Tanh(Activation, type="tanh"):
    r"""$$Out = \tanh X$$"""


class TanhGrad(GradFromOut, of=Tanh):
    r"""$$X@GRAD = Out@GRAD (1 - Out^2)$$"""


class TanhGradGrad(
    GradOpDef,
    of=TanhGrad,
    reads="Out Out@GRAD",
    like={"Out@GRAD": "Out"},
    names={"Out@GRAD": "grad_out", "X@GRAD": "grad_x"},
):
    r"""$$grad\_out@GRAD = grad\_x@GRAD (1 - Out^2),\quad Out@GRAD = -2\,Out \cdot grad\_out \cdot grad\_x@GRAD$$"""

    inplace = {"grad_x@GRAD": "grad_out@GRAD"}


class TanhTripleGrad(
    TripleGrad,
    of=TanhGradGrad,
    type="tanh_triple_grad",
    like={"grad_out": "Out", "grad_x@GRAD": "Out"},
    names={"Out@GRAD": "grad_out_new"},
):
    r"""With $d$ = grad_out_forward, $e$ = grad_x_grad_forward, $a$ = grad_out_new@GRAD, $b$ = grad_out_grad@GRAD:

    $$Out@GRAD = -2 a d e - 2 b e\,Out,\quad d@GRAD = -2 a e\,Out,\quad e@GRAD = b (1 - Out^2) - 2 a d\,Out$$
    """

    def infer_shape(ctx):
        like(ctx, [("Out@GRAD", "Out"), ("grad_out_forward@GRAD", "Out"), ("grad_x_grad_forward@GRAD", "Out")])

    Out = Input("Output of the forward op.")
    grad_out_new_grad = Input("Gradient of the double gradient's Out@GRAD.", dispensable=True)
    Out_grad = Output("Gradient of Out.")
