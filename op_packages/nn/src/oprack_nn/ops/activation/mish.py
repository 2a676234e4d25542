"""mish: all of the op but its kernels."""

from __future__ import annotations

from oprack.op import Attr, OpVersion
from oprack.op.families import USE_MKLDNN, GradFromX

from oprack_nn.ops.activation._family import Activation


class Mish(Activation, type="mish"):
    r"""$$Out = X \tanh(s)$$ with $$s = X$$ where $$X > threshold$$, else $$\ln(1 + e^X)$$"""

    threshold = Attr(20.0, "From here on softplus is the identity.")
    use_mkldnn = USE_MKLDNN
    versions = OpVersion("mish").checkpoint(
        "use_mkldnn; softplus inside as in the softplus op", ("new_attr", "use_mkldnn", False)
    )


class MishGrad(GradFromX, of=Mish):
    r"""With $$t = \tanh(s)$$: $$X@GRAD = Out@GRAD (t + X (1 - t^2) s')$$"""
