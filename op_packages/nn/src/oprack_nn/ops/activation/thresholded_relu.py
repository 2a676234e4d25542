"""thresholded_relu: all of the op but its kernels."""

from __future__ import annotations

from oprack.op import Attr
from oprack.op.families import GradFromX

from oprack_nn.ops.activation._family import Activation


class ThresholdedRelu(Activation, type="thresholded_relu"):
    r"""$$Out = X \cdot [X > threshold]$$"""

    threshold = Attr(1.0, "Smaller values and the threshold itself become 0.")


class ThresholdedReluGrad(GradFromX, of=ThresholdedRelu):
    r"""$$X@GRAD = Out@GRAD \cdot [X > threshold]$$"""
