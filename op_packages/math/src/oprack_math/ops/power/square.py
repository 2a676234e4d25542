"""square, with gradients to second order."""

from __future__ import annotations

from oprack.op.families import USE_CUDNN, USE_MKLDNN, DoubleGradFromX, GradFromX, Unary


class Square(Unary, type="square"):
    r"""$$Out = X^2$$ X may be SelectedRows."""

    use_cudnn = USE_CUDNN
    use_mkldnn = USE_MKLDNN


class SquareGrad(GradFromX, of=Square):
    r"""$$X@GRAD = 2\,X \cdot Out@GRAD$$"""


class SquareGradGrad(DoubleGradFromX, of=SquareGrad):
    r"""$$grad\_out@GRAD = 2\,X \cdot grad\_x@GRAD,\quad X@GRAD = 2\,grad\_out \cdot grad\_x@GRAD$$"""
