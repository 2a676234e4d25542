"""hard_sigmoid: all of the op but its kernels."""

from __future__ import annotations

from oprack.op import Attr
from oprack.op.families import GradFromOut

from oprack_nn.ops.activation._family import Activation


class HardSigmoid(Activation, type="hard_sigmoid"):
    r"""$$Out = \min(\max(slope \cdot X + offset, 0), 1)$$"""

    slope = Attr(0.2, "Slope of the middle part.")
    offset = Attr(0.5, "Value at 0.")


class HardSigmoidGrad(GradFromOut, of=HardSigmoid):
    r"""$$X@GRAD = slope \cdot Out@GRAD \cdot [0 < Out < 1]$$"""
