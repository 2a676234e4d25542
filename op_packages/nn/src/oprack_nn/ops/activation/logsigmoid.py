"""logsigmoid: all of the op but its kernels."""

from __future__ import annotations

from oprack.op.families import USE_CUDNN, USE_MKLDNN, GradFromX

from oprack_nn.ops.activation._family import Activation


class LogSigmoid(Activation, type="logsigmoid"):
    r"""$$Out = -\ln(1 + e^{-X})$$"""

    use_cudnn = USE_CUDNN
    use_mkldnn = USE_MKLDNN


class LogSigmoidGrad(GradFromX, of=LogSigmoid):
    r"""$$X@GRAD = Out@GRAD / (1 + e^X)$$"""
