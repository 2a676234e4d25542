"""hard_swish: all of the op but its kernels."""

from __future__ import annotations

from oprack.op import Attr
from oprack.op.families import USE_MKLDNN, GradFromX

from oprack_nn.ops.activation._family import Activation


class HardSwish(Activation, type="hard_swish"):
    r"""$$Out = X \cdot \min(\max(X + offset, 0), threshold) / scale$$"""

    threshold = Attr(6.0, "Upper bound of the clipped factor.")
    scale = Attr(6.0, "Divisor.")
    offset = Attr(3.0, "Shift before clipping.")
    use_mkldnn = USE_MKLDNN


class HardSwishGrad(GradFromX, of=HardSwish):
    r"""$$X@GRAD = Out@GRAD \cdot \frac{d}{dX} (X \cdot \min(\max(X + offset, 0), threshold) / scale)$$"""
