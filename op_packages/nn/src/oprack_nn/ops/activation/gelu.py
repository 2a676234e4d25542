"""gelu: all of the op but its kernels."""

from __future__ import annotations

from oprack.op import Attr
from oprack.op.families import MKLDNN_DATA_TYPE, USE_MKLDNN, GradFromX

from oprack_nn.ops.activation._family import Activation


class Gelu(Activation, type="gelu"):
    r"""$$Out = \frac{X}{2} (1 + \operatorname{erf}(X / \sqrt 2))$$, or with approximate
    $$Out = \frac{X}{2} (1 + \tanh(\sqrt{2 / \pi} (X + 0.044715 X^3)))$$"""

    approximate = Attr(False, "Use the formula with tanh.")
    use_mkldnn = USE_MKLDNN
    mkldnn_data_type = MKLDNN_DATA_TYPE


class GeluGrad(GradFromX, of=Gelu):
    r"""$$X@GRAD = Out@GRAD \cdot (\Phi(X) + X \phi(X))$$, or the derivative of the formula with tanh"""
