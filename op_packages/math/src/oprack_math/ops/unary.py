"""Element-wise functions of one input: roots, powers of e, trigonometry, rounding."""

from __future__ import annotations

from oprack.op import GradOp
from oprack.op.families import (
    USE_CUDNN,
    USE_MKLDNN,
    DoubleGradFromX,
    GradFromX,
    Unary,
    double_grad_from_x,
    grad_from_out,
    grad_from_x,
)

from oprack_math.ops._unary import (
    Activation,
    ActivationGradFromOut,
    ActivationGradFromX,
    ConstantGrad,
    DoubleGradFromOut,
    double_grad_from_out,
    float_of_integers,
    grad_of_constant,
)


class Exp(Activation, type="exp"):
    r"""$$Out = e^X$$ Integers give float32."""

    infer_var_type = float_of_integers
    make_grad = grad_from_out


class ExpGrad(ActivationGradFromOut, type="exp_grad"):
    r"""$$X@GRAD = Out@GRAD \cdot Out$$"""


class Log(Activation, type="log"):
    r"""$$Out = \ln X$$ Integers give float32."""

    infer_var_type = float_of_integers
    make_grad = grad_from_x


class LogGrad(ActivationGradFromX, type="log_grad"):
    r"""$$X@GRAD = Out@GRAD / X$$"""

    make_grad = double_grad_from_x("log_grad_grad")


class LogGradGrad(DoubleGradFromX, type="log_grad_grad"):
    r"""$$grad\_out@GRAD = grad\_x@GRAD / X,\quad X@GRAD = -grad\_out \cdot grad\_x@GRAD / X^2$$"""

    use_cudnn = USE_CUDNN
    use_mkldnn = USE_MKLDNN


class Sqrt(Activation, type="sqrt"):
    r"""$$Out = \sqrt{X}$$ X may be SelectedRows."""

    make_grad = grad_from_out


class SqrtGrad(ActivationGradFromOut, type="sqrt_grad"):
    r"""$$X@GRAD = Out@GRAD / (2\,Out)$$"""

    make_grad = double_grad_from_out


class SqrtGradGrad(DoubleGradFromOut, type="sqrt_grad_grad"):
    r"""$$grad\_out@GRAD = grad\_x@GRAD / (2\,Out),\quad Out@GRAD = -grad\_x \cdot grad\_x@GRAD / Out$$"""


class Rsqrt(Activation, type="rsqrt"):
    r"""$$Out = 1/\sqrt{X}$$"""

    make_grad = grad_from_out


class RsqrtGrad(ActivationGradFromOut, type="rsqrt_grad"):
    r"""$$X@GRAD = -\tfrac12 Out@GRAD \cdot Out^3$$"""

    make_grad = double_grad_from_out


class RsqrtGradGrad(DoubleGradFromOut, type="rsqrt_grad_grad"):
    r"""$$grad\_out@GRAD = -\tfrac12 grad\_x@GRAD \cdot Out^3,\quad Out@GRAD = 3\,grad\_x \cdot grad\_x@GRAD / Out$$"""


class Square(Unary, type="square"):
    r"""$$Out = X^2$$ X may be SelectedRows."""

    use_cudnn = USE_CUDNN
    use_mkldnn = USE_MKLDNN
    make_grad = grad_from_x


class SquareGrad(ActivationGradFromX, type="square_grad"):
    r"""$$X@GRAD = 2\,X \cdot Out@GRAD$$"""

    make_grad = double_grad_from_x("square_grad_grad")


class SquareGradGrad(DoubleGradFromX, type="square_grad_grad"):
    r"""$$grad\_out@GRAD = 2\,X \cdot grad\_x@GRAD,\quad X@GRAD = 2\,grad\_out \cdot grad\_x@GRAD$$"""

    use_cudnn = USE_CUDNN
    use_mkldnn = USE_MKLDNN


class Reciprocal(Activation, type="reciprocal"):
    r"""$$Out = 1/X$$"""

    make_grad = grad_from_out


class ReciprocalGrad(ActivationGradFromOut, type="reciprocal_grad"):
    r"""$$X@GRAD = -Out@GRAD \cdot Out^2$$"""


class Floor(Activation, type="floor"):
    r"""$$Out = \lfloor X \rfloor$$"""

    make_grad = grad_of_constant


class FloorGrad(ConstantGrad, type="floor_grad"):
    r"""$$X@GRAD = 0$$"""


class Ceil(Activation, type="ceil"):
    r"""$$Out = \lceil X \rceil$$"""

    make_grad = grad_of_constant


class CeilGrad(ConstantGrad, type="ceil_grad"):
    r"""$$X@GRAD = 0$$"""


class Round(Activation, type="round"):
    r"""The nearest integer; halves go away from zero: 2.5 gives 3, -2.5 gives -3."""

    make_grad = grad_of_constant


class RoundGrad(ConstantGrad, type="round_grad"):
    r"""$$X@GRAD = 0$$"""


class Erf(Unary, type="erf"):
    r"""$$Out = \frac{2}{\sqrt\pi} \int_0^X e^{-t^2} dt$$"""

    inplace = {"X": "Out"}
    make_grad = grad_from_x


class ErfGrad(GradFromX, type="erf_grad"):
    r"""$$X@GRAD = Out@GRAD \cdot \frac{2}{\sqrt\pi} e^{-X^2}$$"""

    inplace = {}


class Sign(Unary, type="sign"):
    r"""$$Out = -1, 0, 1 \text{ for negative, zero, positive } X$$"""

    def make_grad(fwd):
        attrs = {"scale": 0.0, "bias": 0.0, "bias_after_scale": True}
        return GradOp("scale", X=fwd.output_grad("Out"), Out=fwd.input_grad("X"), attrs=attrs)
