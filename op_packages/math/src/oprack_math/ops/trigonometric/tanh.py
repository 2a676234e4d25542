"""tanh, with gradients to third order."""

from __future__ import annotations

from oprack.op import GradOpDef, InferShapeContext, Input, Output
from oprack.op.families import GradFromOut, like

from oprack_math.ops._unary import Activation
from oprack_math.ops.trigonometric._family import TripleGrad


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

    def infer_shape(ctx: InferShapeContext) -> None:
        like(ctx, [("Out@GRAD", "Out"), ("grad_out_forward@GRAD", "Out"), ("grad_x_grad_forward@GRAD", "Out")])

    Out = Input("Output of the forward op.")
    grad_out_new_grad = Input("Gradient of the double gradient's Out@GRAD.", dispensable=True)
    Out_grad = Output("Gradient of Out.")
