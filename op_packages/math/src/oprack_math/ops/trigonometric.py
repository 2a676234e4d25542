"""Definitions of trigonometric and hyperbolic functions and of their inverses."""

from __future__ import annotations

from typing import Any

from oprack.op import GradOpDef, InferShapeContext, InferVarTypeContext, Input, OpDef, Output
from oprack.op.families import DoubleGradFromX, GradFromOut, GradFromX, like
from oprack.op.sbp import binary

from oprack_math.composition import composed
from oprack_math.ops._broadcast import broadcast_last
from oprack_math.ops._unary import Activation


# The third gradients of sin, cos and tanh share their slots.
class TripleGrad(
    GradOpDef,
    names={"grad_out": "grad_out_forward", "grad_x@GRAD": "grad_x_grad_forward"},
    grad_names={"grad_out@GRAD": "grad_out_grad@GRAD"},
):
    """Gradient of a double gradient; a gradient that is absent counts as zero."""

    grad_out_forward = Input("Gradient of Out in the first backward pass.")
    grad_x_grad_forward = Input("Gradient of X@GRAD in the second one.")
    grad_out_grad_grad = Input("Gradient of grad_out@GRAD.", dispensable=True, name="grad_out_grad@GRAD")
    grad_out_forward_grad = Output("Gradient of grad_out_forward.")
    grad_x_grad_forward_grad = Output("Gradient of grad_x_grad_forward.")
    inplace = {"grad_x_grad_forward": "grad_out_forward@GRAD"}


class TripleGradFromX(TripleGrad, like={"grad_out": "X", "grad_x@GRAD": "X"}, names={"X@GRAD": "grad_x"}):
    """Of a function whose double gradient reads X."""

    X = Input("Input of the forward op.")
    grad_x_grad = Input("Gradient of the double gradient's X@GRAD.", dispensable=True)
    X_grad = Output("Gradient of X.")


# acos and its gradient.
class Acos(Activation, type="acos"):
    r"""$$Out = \arccos X$$"""


class AcosGrad(GradFromX, of=Acos):
    r"""$$X@GRAD = -Out@GRAD / \sqrt{1 - X^2}$$"""

    make_grad = composed(lambda o, X, Out_grad: -(Out_grad * o.rsqrt(X=1.0 - X * X)))


# acosh and its gradient.
class Acosh(Activation, type="acosh"):
    r"""$$Out = \operatorname{arcosh} X$$"""


class AcoshGrad(GradFromX, of=Acosh):
    r"""$$X@GRAD = Out@GRAD / (\sqrt{X - 1} \sqrt{X + 1})$$"""

    make_grad = composed(lambda o, X, Out_grad: Out_grad * o.rsqrt(X=X - 1.0) * o.rsqrt(X=X + 1.0))


# asin and its gradient.
class Asin(Activation, type="asin"):
    r"""$$Out = \arcsin X$$"""


class AsinGrad(GradFromX, of=Asin):
    r"""$$X@GRAD = Out@GRAD / \sqrt{1 - X^2}$$"""

    make_grad = composed(lambda o, X, Out_grad: Out_grad * o.rsqrt(X=1.0 - X * X))


# asinh and its gradient.
class Asinh(Activation, type="asinh"):
    r"""$$Out = \operatorname{arsinh} X$$"""


class AsinhGrad(GradFromX, of=Asinh):
    r"""$$X@GRAD = Out@GRAD / \sqrt{1 + X^2}$$"""

    make_grad = composed(lambda o, X, Out_grad: Out_grad * o.rsqrt(X=X * X + 1.0))


# atan and its gradient.
class Atan(Activation, type="atan"):
    r"""$$Out = \arctan X$$"""


class AtanGrad(GradFromX, of=Atan):
    r"""$$X@GRAD = Out@GRAD / (1 + X^2)$$"""

    make_grad = composed(lambda o, X, Out_grad: Out_grad / (X * X + 1.0))


# atan2 and its gradient.
class Atan2(OpDef, type="atan2"):
    r"""$$Out = \operatorname{atan2}(X1, X2)$$ the angle of the point (X2, X1), from $-\pi$ to $\pi$. Integers give
    float64."""

    X1 = Input("Tensor of any shape: ordinates.")
    X2 = Input("Tensor whose shape broadcasts with X1's: abscissas.")
    Out = Output("The broadcast shape, LoD of X1.")
    sbp = binary(slots=("X1", "X2", "Out"))

    def infer_shape(ctx: InferShapeContext) -> None:
        broadcast_last(ctx, "X1", "X2")

    def infer_var_type(ctx: InferVarTypeContext) -> None:
        dtype = ctx.dtype("X1")
        ctx.set_dtype("Out", "float64" if "int" in dtype else dtype)


class Atan2Grad(GradOpDef, of=Atan2, reads="X1 X2"):
    r"""$$X1@GRAD = Out@GRAD \cdot X2 / (X1^2 + X2^2),\quad X2@GRAD = -Out@GRAD \cdot X1 / (X1^2 + X2^2)$$"""


# atanh and its gradient.
class Atanh(Activation, type="atanh"):
    r"""$$Out = \operatorname{artanh} X$$"""


class AtanhGrad(GradFromX, of=Atanh):
    r"""$$X@GRAD = Out@GRAD / (1 - X^2)$$"""

    make_grad = composed(lambda o, X, Out_grad: Out_grad / (1.0 - X * X))


# cos, with gradients to third order.
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


# cosh and its gradient.
class Cosh(Activation, type="cosh"):
    r"""$$Out = \cosh X$$"""


class CoshGrad(GradFromX, of=Cosh):
    r"""$$X@GRAD = Out@GRAD \cdot \sinh X$$"""

    make_grad = composed(lambda o, X, Out_grad: Out_grad * o.sinh(X=X))


# sin, with gradients to third order.
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


# sinh and its gradient.
class Sinh(Activation, type="sinh"):
    r"""$$Out = \sinh X$$"""


class SinhGrad(GradFromX, of=Sinh):
    r"""$$X@GRAD = Out@GRAD \cdot \cosh X$$"""

    make_grad = composed(lambda o, X, Out_grad: Out_grad * o.cosh(X=X))


# tan and its gradient.
class Tan(Activation, type="tan"):
    r"""$$Out = \tan X$$"""


class TanGrad(GradFromX, of=Tan):
    r"""$$X@GRAD = Out@GRAD (1 + \tan^2 X)$$"""

    @composed
    def make_grad(o: Any, X: Any, Out_grad: Any) -> Any:
        tan = o.tan(X=X)
        return Out_grad * (tan * tan + 1.0)


# tanh, with gradients to third order.
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
