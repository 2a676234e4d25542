"""silu: all of the op but its kernels."""

from __future__ import annotations

from oprack.op.families import USE_CUDNN, USE_MKLDNN, GradFromX

from oprack_nn.ops.activation._family import Activation


class Silu(Activation, type="silu"):
    r"""$$Out = X / (1 + e^{-X})$$"""

    use_cudnn = USE_CUDNN
    use_mkldnn = USE_MKLDNN


class SiluGrad(GradFromX, of=Silu, reads="X Out@GRAD Out"):
    r"""With $$s = 1 / (1 + e^{-X})$$: $$X@GRAD = Out@GRAD (s + Out (1 - s))$$"""
