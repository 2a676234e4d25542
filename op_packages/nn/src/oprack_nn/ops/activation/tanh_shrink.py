"""tanh_shrink: all of the op but its kernels."""

from __future__ import annotations

from oprack.op.families import USE_CUDNN, USE_MKLDNN, GradFromX

from oprack_nn.ops.activation._family import Activation


class TanhShrink(Activation, type="tanh_shrink"):
    r"""$$Out = X - \tanh(X)$$"""

    use_cudnn = USE_CUDNN
    use_mkldnn = USE_MKLDNN


class TanhShrinkGrad(GradFromX, of=TanhShrink):
    r"""$$X@GRAD = Out@GRAD \tanh^2(X)$$"""
