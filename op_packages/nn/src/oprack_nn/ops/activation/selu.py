"""selu: all of the op but its kernels."""

from __future__ import annotations

from oprack.op import Attr
from oprack.op.families import GradFromOut

from oprack_nn.ops.activation._family import Activation


class Selu(Activation, type="selu"):
    r"""$$Out = scale \cdot X$$ where $$X > 0$$, else $$scale \cdot alpha (e^X - 1)$$"""

    scale = Attr(1.0507009873554805, "Factor that keeps the variance.")
    alpha = Attr(1.6732632423543772, "Size of the negative side.")


class SeluGrad(GradFromOut, of=Selu):
    r"""$$X@GRAD = scale \cdot Out@GRAD$$ where $$Out > 0$$, else $$Out@GRAD (Out + scale \cdot alpha)$$"""
