"""stanh: all of the op but its kernels."""

from __future__ import annotations

from oprack.op import Attr
from oprack.op.families import GradFromX

from oprack_nn.ops.activation._family import Activation


class Stanh(Activation, type="stanh"):
    r"""$$Out = scale\_b \tanh(scale\_a X)$$"""

    scale_a = Attr(0.67, "Factor of X.")
    scale_b = Attr(1.7159, "Factor of the result.")


class StanhGrad(GradFromX, of=Stanh):
    r"""$$X@GRAD = Out@GRAD \cdot scale\_a \cdot scale\_b (1 - \tanh^2(scale\_a X))$$"""
