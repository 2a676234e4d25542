"""celu: all of the op but its kernels."""

from __future__ import annotations

from oprack.op import Attr
from oprack.op.families import DoubleGradFromX, GradFromX

from oprack_nn.ops.activation._family import Activation


class Celu(Activation, type="celu"):
    r"""$$Out = \max(0, X) + \min(0, alpha (e^{X / alpha} - 1))$$"""

    alpha = Attr(1.0, "Size of the negative side; not 0.").check(lambda v: v != 0, "a number other than 0")


class CeluGrad(GradFromX, of=Celu):
    r"""$$X@GRAD = Out@GRAD$$ where $$X > 0$$, else $$Out@GRAD \cdot e^{X / alpha}$$"""


class CeluGradGrad(DoubleGradFromX, of=CeluGrad):
    r"""Where $$X > 0$$: X@GRAD = 0, grad_out@GRAD = grad_x@GRAD; else, with $$e = e^{X / alpha}$$,
    $$X@GRAD = grad\_x@GRAD \cdot grad\_out \cdot e / alpha$$ and $$grad\_out@GRAD = grad\_x@GRAD \cdot e$$"""
