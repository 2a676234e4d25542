"""relu6: all of the op but its kernels."""

from __future__ import annotations

from oprack.op import Attr
from oprack.op.families import USE_MKLDNN, GradFromOut

from oprack_nn.ops.activation._family import Activation


class Relu6(Activation, type="relu6"):
    r"""$$Out = \min(\max(X, 0), threshold)$$"""

    threshold = Attr(6.0, "Upper bound.", extra=True)
    use_mkldnn = USE_MKLDNN


class Relu6Grad(GradFromOut, of=Relu6):
    r"""$$X@GRAD = Out@GRAD \cdot [0 < Out < threshold]$$"""
