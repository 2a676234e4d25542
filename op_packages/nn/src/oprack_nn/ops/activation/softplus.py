"""softplus: all of the op but its kernels."""

from __future__ import annotations

from oprack.op import Attr, OpVersion
from oprack.op.families import USE_CUDNN, USE_MKLDNN, DoubleGradFromX, GradFromX

from oprack_nn.ops.activation._family import Activation


class Softplus(Activation, type="softplus"):
    r"""$$Out = \ln(1 + e^{beta X}) / beta$$, or X where $$beta X > threshold$$"""

    beta = Attr(1.0, "Sharpness of the bend; not 0.").check(lambda v: v != 0, "a number other than 0")
    threshold = Attr(20.0, "From here on the op is the identity.")
    use_cudnn = USE_CUDNN
    use_mkldnn = USE_MKLDNN
    versions = OpVersion("softplus").checkpoint(
        "the bend can be sharpened, and the linear part starts at a threshold",
        ("new_attr", "beta", 1.0),
        ("new_attr", "threshold", 20.0),
    )


class SoftplusGrad(GradFromX, of=Softplus):
    r"""$$X@GRAD = Out@GRAD / (1 + e^{-beta X})$$, or Out@GRAD where $$beta X > threshold$$"""


class SoftplusDoubleGrad(DoubleGradFromX, of=SoftplusGrad, type="softplus_double_grad"):
    r"""With $$s = 1 / (1 + e^{-beta X})$$: $$grad\_out@GRAD = s \cdot grad\_x@GRAD$$ and
    $$X@GRAD = beta \cdot s (1 - s) \cdot grad\_out \cdot grad\_x@GRAD$$; s is 1 where $$beta X > threshold$$"""
