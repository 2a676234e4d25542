"""Element-wise functions of one input: roots, powers of e, trigonometry, rounding."""

from __future__ import annotations

from oprack.op import GradOp, GradOpDef
from oprack.op.families import (
    USE_CUDNN,
    USE_MKLDNN,
    DoubleGradFromX,
    GradFromOut,
    GradFromX,
    Unary,
)

from oprack_math.ops._unary import (
    Activation,
    DoubleGradFromOut,
    float_of_integers,
)


class Exp(Activation, type="exp"):
    r"""$$Out = e^X$$ Integers give float32."""

    infer_var_type = float_of_integers


class ExpGrad(GradFromOut, of=Exp):
    r"""$$X@GRAD = Out@GRAD \cdot Out$$"""


class Log(Activation, type="log"):
    r"""$$Out = \ln X$$ Integers give float32."""

    infer_var_type = float_of_integers


class LogGrad(GradFromX, of=Log):
    r"""$$X@GRAD = Out@GRAD / X$$"""


class LogGradGrad(DoubleGradFromX, of=LogGrad):
    r"""$$grad\_out@GRAD = grad\_x@GRAD / X,\quad X@GRAD = -grad\_out \cdot grad\_x@GRAD / X^2$$"""


class Sqrt(Activation, type="sqrt"):
    r"""$$Out = \sqrt{X}$$ X may be SelectedRows."""


class SqrtGrad(GradFromOut, of=Sqrt):
    r"""$$X@GRAD = Out@GRAD / (2\,Out)$$"""


class SqrtGradGrad(DoubleGradFromOut, of=SqrtGrad):
    r"""$$grad\_out@GRAD = grad\_x@GRAD / (2\,Out),\quad Out@GRAD = -grad\_x \cdot grad\_x@GRAD / Out$$"""


class Rsqrt(Activation, type="rsqrt"):
    r"""$$Out = 1/\sqrt{X}$$"""


class RsqrtGrad(GradFromOut, of=Rsqrt):
    r"""$$X@GRAD = -\tfrac12 Out@GRAD \cdot Out^3$$"""


class RsqrtGradGrad(DoubleGradFromOut, of=RsqrtGrad):
    r"""$$grad\_out@GRAD = -\tfrac12 grad\_x@GRAD \cdot Out^3,\quad Out@GRAD = 3\,grad\_x \cdot grad\_x@GRAD / Out$$"""


class Square(Unary, type="square"):
    r"""$$Out = X^2$$ X may be SelectedRows."""

    use_cudnn = USE_CUDNN
    use_mkldnn = USE_MKLDNN


class SquareGrad(GradFromX, of=Square):
    r"""$$X@GRAD = 2\,X \cdot Out@GRAD$$"""


class SquareGradGrad(DoubleGradFromX, of=SquareGrad):
    r"""$$grad\_out@GRAD = 2\,X \cdot grad\_x@GRAD,\quad X@GRAD = 2\,grad\_out \cdot grad\_x@GRAD$$"""


class Reciprocal(Activation, type="reciprocal"):
    r"""$$Out = 1/X$$"""


class ReciprocalGrad(GradFromOut, of=Reciprocal):
    r"""$$X@GRAD = -Out@GRAD \cdot Out^2$$"""


class Floor(Activation, type="floor"):
    r"""$$Out = \lfloor X \rfloor$$"""


class FloorGrad(GradOpDef, of=Floor, like="Out@GRAD"):
    r"""$$X@GRAD = 0$$"""

    inplace = {"Out@GRAD": "X@GRAD"}


class Ceil(Activation, type="ceil"):
    r"""$$Out = \lceil X \rceil$$"""


class CeilGrad(GradOpDef, of=Ceil, like="Out@GRAD"):
    r"""$$X@GRAD = 0$$"""

    inplace = {"Out@GRAD": "X@GRAD"}


class Round(Activation, type="round"):
    r"""The nearest integer; halves go away from zero: 2.5 gives 3, -2.5 gives -3."""


class RoundGrad(GradOpDef, of=Round, like="Out@GRAD"):
    r"""$$X@GRAD = 0$$"""

    inplace = {"Out@GRAD": "X@GRAD"}


class Erf(Unary, type="erf"):
    r"""$$Out = \frac{2}{\sqrt\pi} \int_0^X e^{-t^2} dt$$"""

    inplace = {"X": "Out"}


class ErfGrad(GradFromX, of=Erf):
    r"""$$X@GRAD = Out@GRAD \cdot \frac{2}{\sqrt\pi} e^{-X^2}$$"""

    inplace = {}


class Sign(Unary, type="sign"):
    r"""$$Out = -1, 0, 1 \text{ for negative, zero, positive } X$$"""

    def make_grad(fwd):
        attrs = {"scale": 0.0, "bias": 0.0, "bias_after_scale": True}
        return GradOp("scale", X=fwd.output_grad("Out"), Out=fwd.input_grad("X"), attrs=attrs)
