"""soft_relu: all of the op but its kernels."""

from __future__ import annotations

from oprack.op import Attr
from oprack.op.families import GradFromOut

from oprack_nn.ops.activation._family import Activation


class SoftRelu(Activation, type="soft_relu"):
    r"""$$Out = \ln(1 + e^{\min(\max(X, -threshold), threshold)})$$"""

    threshold = Attr(40.0, "X is clipped to this range.")


class SoftReluGrad(GradFromOut, of=SoftRelu):
    r"""$$X@GRAD = Out@GRAD (1 - e^{-Out})$$ where $$-threshold < Out < threshold$$, else 0"""
