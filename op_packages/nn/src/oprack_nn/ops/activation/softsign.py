"""softsign: all of the op but its kernels."""

from __future__ import annotations

from oprack.op.families import USE_CUDNN, USE_MKLDNN, GradFromX

from oprack_nn.ops.activation._family import Activation


class SoftSign(Activation, type="softsign"):
    r"""$$Out = X / (1 + |X|)$$"""

    use_cudnn = USE_CUDNN
    use_mkldnn = USE_MKLDNN


class SoftSignGrad(GradFromX, of=SoftSign):
    r"""$$X@GRAD = Out@GRAD / (1 + |X|)^2$$"""
