"""elu: all of the op but its kernels."""

from __future__ import annotations

from oprack.op import Attr
from oprack.op.families import USE_MKLDNN, DoubleGradFromX, GradFromX

from oprack_nn.ops.activation._family import Activation


class Elu(Activation, type="elu"):
    r"""$$Out = X$$ where $$X \ge 0$$, else $$alpha (e^X - 1)$$"""

    alpha = Attr(1.0, "Size of the negative side.")
    use_mkldnn = USE_MKLDNN


class EluGrad(GradFromX, of=Elu, reads="X Out@GRAD Out"):
    r"""$$X@GRAD = Out@GRAD$$ where $$X > 0$$, else $$Out@GRAD (Out + alpha)$$"""


class EluGradGrad(DoubleGradFromX, of=EluGrad):
    r"""Where $$X > 0$$: X@GRAD = 0, grad_out@GRAD = grad_x@GRAD; else, with $$e = alpha \cdot e^X$$,
    $$X@GRAD = grad\_x@GRAD \cdot grad\_out \cdot e$$ and $$grad\_out@GRAD = grad\_x@GRAD \cdot e$$"""
