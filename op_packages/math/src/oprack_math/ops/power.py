"""Definitions of powers, roots, e to the power of X and logarithms."""

from __future__ import annotations

import math

from oprack.op import Attr, GradOpDef, InferShapeContext, InferVarTypeContext, Input, OpDef, Output, dtype_of
from oprack.op.families import USE_CUDNN, USE_MKLDNN, DoubleGradFromX, GradFromOut, GradFromX, Unary, like, out_like_x
from oprack.op.sbp import unary

from oprack_math.composition import composed
from oprack_math.ops._unary import Activation


# What powers, roots and logarithms share: dtypes of integers, and second gradients that read the output.
def float_of_integers(ctx: InferVarTypeContext) -> None:
    """infer_var_type of functions that turn integers into float32."""
    dtype = ctx.dtype("X")
    ctx.set_kind("Out", ctx.kind("X"))
    ctx.set_dtype("Out", "float32" if "int" in dtype else dtype)


class DoubleGradFromOut(GradOpDef, names={"Out@GRAD": "grad_out", "X@GRAD": "grad_x"}):
    """Gradient of a GradFromOut op that knows X@GRAD instead of Out@GRAD."""

    Out = Input("Output of the forward op.")
    grad_x = Input("Gradient of X.")
    grad_x_grad = Input("Gradient of X@GRAD.")
    Out_grad = Output("Gradient of Out.")
    grad_out_grad = Output("Gradient of Out@GRAD.")
    inplace = {"grad_x@GRAD": "grad_out@GRAD"}

    def infer_shape(ctx: InferShapeContext) -> None:
        like(ctx, [("Out@GRAD", "Out"), ("grad_out@GRAD", "Out")])


# exp and its gradient.
class Exp(Activation, type="exp"):
    r"""$$Out = e^X$$ Integers give float32."""

    infer_var_type = float_of_integers


class ExpGrad(GradFromOut, of=Exp):
    r"""$$X@GRAD = Out@GRAD \cdot Out$$"""

    make_grad = composed(lambda o, Out, Out_grad: Out_grad * Out)


# expm1 and its gradient.
class Expm1(Activation, type="expm1"):
    r"""$$Out = e^X - 1$$ exact to rounding also near 0. Integers give float32."""

    infer_var_type = float_of_integers


class Expm1Grad(GradFromOut, of=Expm1):
    r"""$$X@GRAD = Out@GRAD (Out + 1)$$"""

    make_grad = composed(lambda o, Out, Out_grad: Out_grad * (Out + 1.0))


# log, with gradients to second order.
class Log(Activation, type="log"):
    r"""$$Out = \ln X$$ Integers give float32."""

    infer_var_type = float_of_integers


class LogGrad(GradFromX, of=Log):
    r"""$$X@GRAD = Out@GRAD / X$$"""


class LogGradGrad(DoubleGradFromX, of=LogGrad):
    r"""$$grad\_out@GRAD = grad\_x@GRAD / X,\quad X@GRAD = -grad\_out \cdot grad\_x@GRAD / X^2$$"""


# log10 and its gradient.
class Log10(Activation, type="log10"):
    r"""$$Out = \log_{10} X$$ Integers give float32."""

    infer_var_type = float_of_integers


class Log10Grad(GradFromX, of=Log10):
    r"""$$X@GRAD = Out@GRAD / (X \ln 10)$$"""

    make_grad = composed(lambda o, X, Out_grad: Out_grad / (X * math.log(10)))


# log1p and its gradient.
class Log1p(Activation, type="log1p"):
    r"""$$Out = \ln(1 + X)$$ exact to rounding also near 0. Integers give float32."""

    infer_var_type = float_of_integers


class Log1pGrad(GradFromX, of=Log1p):
    r"""$$X@GRAD = Out@GRAD / (1 + X)$$"""

    make_grad = composed(lambda o, X, Out_grad: Out_grad / (X + 1.0))


# log2 and its gradient.
class Log2(Activation, type="log2"):
    r"""$$Out = \log_2 X$$ Integers give float32."""

    infer_var_type = float_of_integers


class Log2Grad(GradFromX, of=Log2):
    r"""$$X@GRAD = Out@GRAD / (X \ln 2)$$"""

    make_grad = composed(lambda o, X, Out_grad: Out_grad / (X * math.log(2)))


# pow, with gradients to third order.
class Pow(OpDef, type="pow"):
    r"""$$Out = X^{factor}$$ For integers the exponent is cut towards zero."""

    X = Input("Tensor of any shape.")
    FactorTensor = Input("One-element tensor that overrides `factor`.", dispensable=True)
    Out = Output("Shape and LoD of X.")
    factor = Attr(1.0, "The exponent.")
    inplace = {"X": "Out"}
    expected_kernel_type = dtype_of("X")
    sbp = unary
    infer_shape = out_like_x


class PowGrad(GradOpDef, of=Pow, reads="X FactorTensor", grads_of="X"):
    r"""$$X@GRAD = Out@GRAD \cdot factor \cdot X^{factor-1}$$"""

    inplace = {"Out@GRAD": "X@GRAD"}
    expected_kernel_type = dtype_of("X")


class PowDoubleGrad(
    GradOpDef,
    of=PowGrad,
    type="pow_double_grad",
    like={"Out@GRAD": "X"},
    reads="X FactorTensor Out@GRAD",
    grads_of="X Out@GRAD",
    names={"Out@GRAD": "grad_out", "X@GRAD": "grad_x"},
):
    r"""With $f$ = factor and $e$ = grad_x@GRAD:

    $$X@GRAD = e \cdot grad\_out \cdot f (f-1) X^{f-2},\quad grad\_out@GRAD = e f X^{f-1}$$
    """

    inplace = {"grad_x@GRAD": "grad_out@GRAD"}
    expected_kernel_type = dtype_of("X")


class PowTripleGrad(
    GradOpDef,
    of=PowDoubleGrad,
    type="pow_triple_grad",
    like={"grad_out": "X", "grad_x@GRAD": "X"},
    reads="X FactorTensor grad_out grad_x@GRAD X@GRAD@GRAD? grad_out@GRAD@GRAD?",
    grads_of="X grad_out grad_x@GRAD",
    names={"grad_x@GRAD": "grad_grad_x", "grad_out@GRAD": "grad_grad_out", "X@GRAD": "grad_x"},
):
    r"""With $f$ = factor, $d$ = grad_out, $e$ = grad_grad_x, $a$ = grad_x@GRAD, $b$ = grad_grad_out@GRAD:

    $$X@GRAD = a e d f (f-1) (f-2) X^{f-3} + b e f (f-1) X^{f-2}$$
    $$d@GRAD = a e f (f-1) X^{f-2},\quad e@GRAD = a d f (f-1) X^{f-2} + b f X^{f-1}$$
    """

    expected_kernel_type = dtype_of("X")


# reciprocal and its gradient.
class Reciprocal(Activation, type="reciprocal"):
    r"""$$Out = 1/X$$"""


class ReciprocalGrad(GradFromOut, of=Reciprocal):
    r"""$$X@GRAD = -Out@GRAD \cdot Out^2$$"""

    make_grad = composed(lambda o, Out, Out_grad: -(Out_grad * Out * Out))


# rsqrt, with gradients to second order.
class Rsqrt(Activation, type="rsqrt"):
    r"""$$Out = 1/\sqrt{X}$$"""


class RsqrtGrad(GradFromOut, of=Rsqrt):
    r"""$$X@GRAD = -\tfrac12 Out@GRAD \cdot Out^3$$"""


class RsqrtGradGrad(DoubleGradFromOut, of=RsqrtGrad):
    r"""$$grad\_out@GRAD = -\tfrac12 grad\_x@GRAD \cdot Out^3,\quad Out@GRAD = 3\,grad\_x \cdot grad\_x@GRAD / Out$$"""


# sqrt, with gradients to second order.
class Sqrt(Activation, type="sqrt"):
    r"""$$Out = \sqrt{X}$$ X may be SelectedRows."""


class SqrtGrad(GradFromOut, of=Sqrt):
    r"""$$X@GRAD = Out@GRAD / (2\,Out)$$"""


class SqrtGradGrad(DoubleGradFromOut, of=SqrtGrad):
    r"""$$grad\_out@GRAD = grad\_x@GRAD / (2\,Out),\quad Out@GRAD = -grad\_x \cdot grad\_x@GRAD / Out$$"""


# square, with gradients to second order.
class Square(Unary, type="square"):
    r"""$$Out = X^2$$ X may be SelectedRows."""

    use_cudnn = USE_CUDNN
    use_mkldnn = USE_MKLDNN


class SquareGrad(GradFromX, of=Square):
    r"""$$X@GRAD = 2\,X \cdot Out@GRAD$$"""


class SquareGradGrad(DoubleGradFromX, of=SquareGrad):
    r"""$$grad\_out@GRAD = 2\,X \cdot grad\_x@GRAD,\quad X@GRAD = 2\,grad\_out \cdot grad\_x@GRAD$$"""
