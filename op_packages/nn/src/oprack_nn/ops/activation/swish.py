"""swish: all of the op but its kernels."""

from __future__ import annotations

from oprack.op import Attr
from oprack.op.families import USE_MKLDNN, GradFromX

from oprack_nn.ops.activation._family import Activation


class Swish(Activation, type="swish"):
    r"""$$Out = X / (1 + e^{-beta X})$$"""

    beta = Attr(1.0, "Factor inside the sigmoid.", extra=True)
    use_mkldnn = USE_MKLDNN


class SwishGrad(GradFromX, of=Swish):
    r"""With $$s = 1 / (1 + e^{-beta X})$$: $$X@GRAD = Out@GRAD \cdot s (1 + beta X (1 - s))$$"""
