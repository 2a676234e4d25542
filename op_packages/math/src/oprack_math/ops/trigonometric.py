"""sin, cos and tanh, with gradients to third order."""

from __future__ import annotations

from oprack.op import GradOp, GradOpDef, Input, Output
from oprack.op.families import (
    USE_CUDNN,
    USE_MKLDNN,
    DoubleGradFromX,
    double_grad_from_x,
    grad_from_out,
    grad_from_x,
    like,
)

from oprack_math.ops._trigonometric import TripleGrad, TripleGradFromX, triple_grad_from_x
from oprack_math.ops._unary import Activation, ActivationGradFromOut, ActivationGradFromX


class Sin(Activation, type="sin"):
    r"""$$Out = \sin X$$"""

    make_grad = grad_from_x


class SinGrad(ActivationGradFromX, type="sin_grad"):
    r"""$$X@GRAD = Out@GRAD \cdot \cos X$$"""

    make_grad = double_grad_from_x("sin_double_grad")


class SinDoubleGrad(DoubleGradFromX, type="sin_double_grad"):
    r"""$$grad\_out@GRAD = grad\_x@GRAD \cos X,\quad X@GRAD = -grad\_out \cdot grad\_x@GRAD \sin X$$"""

    use_cudnn = USE_CUDNN
    use_mkldnn = USE_MKLDNN
    make_grad = triple_grad_from_x("sin_triple_grad")


class SinTripleGrad(TripleGradFromX, type="sin_triple_grad"):
    r"""With $d$ = grad_out_forward, $e$ = grad_x_grad_forward, $a$ = grad_x@GRAD, $b$ = grad_out_grad@GRAD:

    $$X@GRAD = -a e d \cos X - b e \sin X,\quad d@GRAD = -a e \sin X,\quad e@GRAD = b \cos X - a d \sin X$$
    """


class Cos(Activation, type="cos"):
    r"""$$Out = \cos X$$"""

    make_grad = grad_from_x


class CosGrad(ActivationGradFromX, type="cos_grad"):
    r"""$$X@GRAD = -Out@GRAD \cdot \sin X$$"""

    make_grad = double_grad_from_x("cos_double_grad")


class CosDoubleGrad(DoubleGradFromX, type="cos_double_grad"):
    r"""$$grad\_out@GRAD = -grad\_x@GRAD \sin X,\quad X@GRAD = -grad\_out \cdot grad\_x@GRAD \cos X$$"""

    use_cudnn = USE_CUDNN
    use_mkldnn = USE_MKLDNN
    make_grad = triple_grad_from_x("cos_triple_grad")


class CosTripleGrad(TripleGradFromX, type="cos_triple_grad"):
    r"""With $d$ = grad_out_forward, $e$ = grad_x_grad_forward, $a$ = grad_x@GRAD, $b$ = grad_out_grad@GRAD:

    $$X@GRAD = a e d \sin X - b e \cos X,\quad d@GRAD = -a e \cos X,\quad e@GRAD = -b \sin X - a d \cos X$$
    """


class Tanh(Activation, type="tanh"):
    r"""$$Out = \tanh X$$"""

    make_grad = grad_from_out


class TanhGrad(ActivationGradFromOut, type="tanh_grad"):
    r"""$$X@GRAD = Out@GRAD (1 - Out^2)$$"""

    def make_grad(fwd):
        return GradOp(
            "tanh_grad_grad",
            Out=fwd.input("Out"),
            grad_out=fwd.input("Out@GRAD"),
            grad_x_grad=fwd.output_grad("X@GRAD"),
            Out_grad=fwd.input_grad("Out"),
            grad_out_grad=fwd.input_grad("Out@GRAD"),
            attrs=fwd.attrs,
        )


class TanhGradGrad(GradOpDef, type="tanh_grad_grad"):
    r"""$$grad\_out@GRAD = grad\_x@GRAD (1 - Out^2),\quad Out@GRAD = -2\,Out \cdot grad\_out \cdot grad\_x@GRAD$$"""

    Out = Input("Output of the forward op.")
    grad_out = Input("Gradient of Out.")
    grad_x_grad = Input("Gradient of X@GRAD.")
    Out_grad = Output("Gradient of Out.")
    grad_out_grad = Output("Gradient of Out@GRAD.")
    use_cudnn = USE_CUDNN
    use_mkldnn = USE_MKLDNN
    inplace = {"grad_x@GRAD": "grad_out@GRAD"}

    def infer_shape(ctx):
        like(ctx, [("Out@GRAD", "Out"), ("grad_out@GRAD", "Out")])

    def make_grad(fwd):
        slots = {
            "Out": fwd.input("Out"),
            "grad_out_forward": fwd.input("grad_out"),
            "grad_x_grad_forward": fwd.input("grad_x@GRAD"),
            "grad_out_new@GRAD": fwd.output_grad("Out@GRAD") if fwd.has_output("Out@GRAD") else None,
            "grad_out_grad@GRAD": fwd.output_grad("grad_out@GRAD") if fwd.has_output("grad_out@GRAD") else None,
            "Out@GRAD": fwd.input_grad("Out"),
            "grad_out_forward@GRAD": fwd.input_grad("grad_out"),
            "grad_x_grad_forward@GRAD": fwd.input_grad("grad_x@GRAD"),
        }
        return GradOp("tanh_triple_grad", attrs=fwd.attrs, slots=slots)


class TanhTripleGrad(TripleGrad, type="tanh_triple_grad"):
    r"""With $d$ = grad_out_forward, $e$ = grad_x_grad_forward, $a$ = grad_out_new@GRAD, $b$ = grad_out_grad@GRAD:

    $$Out@GRAD = -2 a d e - 2 b e\,Out,\quad d@GRAD = -2 a e\,Out,\quad e@GRAD = b (1 - Out^2) - 2 a d\,Out$$
    """

    Out = Input("Output of the forward op.")
    grad_out_new_grad = Input("Gradient of the double gradient's Out@GRAD.", dispensable=True)
    Out_grad = Output("Gradient of Out.")

    def infer_shape(ctx):
        like(ctx, [("Out@GRAD", "Out"), ("grad_out_forward@GRAD", "Out"), ("grad_x_grad_forward@GRAD", "Out")])
