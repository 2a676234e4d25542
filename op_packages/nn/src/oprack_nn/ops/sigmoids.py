"""Smooth activations: sigmoid, softplus, and what is made of them."""

from __future__ import annotations

from oprack.op import Attr, GradOpDef, OpVersion
from oprack.op.families import (
    MKLDNN_DATA_TYPE,
    USE_CUDNN,
    USE_MKLDNN,
    DoubleGradFromX,
    GradFromOut,
    GradFromX,
)

from oprack_nn.ops._activation import Activation


class Sigmoid(Activation, type="sigmoid"):
    r"""$$Out = 1 / (1 + e^{-X})$$"""

    use_cudnn = USE_CUDNN
    use_mkldnn = USE_MKLDNN


class SigmoidGrad(GradFromOut, of=Sigmoid):
    r"""$$X@GRAD = Out@GRAD \cdot Out (1 - Out)$$"""


class SigmoidGradGrad(
    GradOpDef,
    of=SigmoidGrad,
    reads="Out Out@GRAD",
    like={"Out@GRAD": "Out"},
    names={"Out@GRAD": "fwd_grad_out", "X@GRAD": "grad_x"},
):
    r"""$$Out@GRAD = (1 - 2 Out) \cdot fwd\_grad\_out \cdot grad\_x@GRAD$$,
    $$fwd\_grad\_out@GRAD = Out (1 - Out) \cdot grad\_x@GRAD$$"""


class SigmoidTripleGrad(
    GradOpDef,
    of=SigmoidGradGrad,
    type="sigmoid_triple_grad",
    reads="Out fwd_grad_out grad_x@GRAD Out@GRAD@GRAD fwd_grad_out@GRAD@GRAD?",
    like={"fwd_grad_out": "Out", "grad_x@GRAD": "Out"},
    names={"grad_x@GRAD": "grad_grad_x", "fwd_grad_out@GRAD": "grad_grad_out", "Out@GRAD": "grad_out"},
):
    r"""Gradient of sigmoid_grad_grad. With $$a$$ = grad_out@GRAD, $$b$$ = grad_grad_out@GRAD, $$d$$ = fwd_grad_out and
    $$g$$ = grad_grad_x: $$Out@GRAD = (b (1 - 2 Out) - 2 a d) g$$, $$fwd\_grad\_out@GRAD = a (1 - 2 Out) g$$ and
    $$grad\_grad\_x@GRAD = a (1 - 2 Out) d + b Out (1 - Out)$$"""


class LogSigmoid(Activation, type="logsigmoid"):
    r"""$$Out = -\ln(1 + e^{-X})$$"""

    use_cudnn = USE_CUDNN
    use_mkldnn = USE_MKLDNN


class LogSigmoidGrad(GradFromX, of=LogSigmoid):
    r"""$$X@GRAD = Out@GRAD / (1 + e^X)$$"""


class Silu(Activation, type="silu"):
    r"""$$Out = X / (1 + e^{-X})$$"""

    use_cudnn = USE_CUDNN
    use_mkldnn = USE_MKLDNN


class SiluGrad(GradFromX, of=Silu, reads="X Out@GRAD Out"):
    r"""With $$s = 1 / (1 + e^{-X})$$: $$X@GRAD = Out@GRAD (s + Out (1 - s))$$"""


class Swish(Activation, type="swish"):
    r"""$$Out = X / (1 + e^{-beta X})$$"""

    beta = Attr(1.0, "Factor inside the sigmoid.", extra=True)
    use_mkldnn = USE_MKLDNN


class SwishGrad(GradFromX, of=Swish):
    r"""With $$s = 1 / (1 + e^{-beta X})$$: $$X@GRAD = Out@GRAD \cdot s (1 + beta X (1 - s))$$"""


class Gelu(Activation, type="gelu"):
    r"""$$Out = \frac{X}{2} (1 + \operatorname{erf}(X / \sqrt 2))$$, or with approximate
    $$Out = \frac{X}{2} (1 + \tanh(\sqrt{2 / \pi} (X + 0.044715 X^3)))$$"""

    approximate = Attr(False, "Use the formula with tanh.")
    use_mkldnn = USE_MKLDNN
    mkldnn_data_type = MKLDNN_DATA_TYPE


class GeluGrad(GradFromX, of=Gelu):
    r"""$$X@GRAD = Out@GRAD \cdot (\Phi(X) + X \phi(X))$$, or the derivative of the formula with tanh"""


class Mish(Activation, type="mish"):
    r"""$$Out = X \tanh(s)$$ with $$s = X$$ where $$X > threshold$$, else $$\ln(1 + e^X)$$"""

    threshold = Attr(20.0, "From here on softplus is the identity.")
    use_mkldnn = USE_MKLDNN
    versions = OpVersion("mish").checkpoint(
        "use_mkldnn; softplus inside as in the softplus op", ("new_attr", "use_mkldnn", False)
    )


class MishGrad(GradFromX, of=Mish):
    r"""With $$t = \tanh(s)$$: $$X@GRAD = Out@GRAD (t + X (1 - t^2) s')$$"""


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


class SoftRelu(Activation, type="soft_relu"):
    r"""$$Out = \ln(1 + e^{\min(\max(X, -threshold), threshold)})$$"""

    threshold = Attr(40.0, "X is clipped to this range.")


class SoftReluGrad(GradFromOut, of=SoftRelu):
    r"""$$X@GRAD = Out@GRAD (1 - e^{-Out})$$ where $$-threshold < Out < threshold$$, else 0"""


class SoftSign(Activation, type="softsign"):
    r"""$$Out = X / (1 + |X|)$$"""

    use_cudnn = USE_CUDNN
    use_mkldnn = USE_MKLDNN


class SoftSignGrad(GradFromX, of=SoftSign):
    r"""$$X@GRAD = Out@GRAD / (1 + |X|)^2$$"""


class TanhShrink(Activation, type="tanh_shrink"):
    r"""$$Out = X - \tanh(X)$$"""

    use_cudnn = USE_CUDNN
    use_mkldnn = USE_MKLDNN


class TanhShrinkGrad(GradFromX, of=TanhShrink):
    r"""$$X@GRAD = Out@GRAD \tanh^2(X)$$"""


class Stanh(Activation, type="stanh"):
    r"""$$Out = scale\_b \tanh(scale\_a X)$$"""

    scale_a = Attr(0.67, "Factor of X.")
    scale_b = Attr(1.7159, "Factor of the result.")


class StanhGrad(GradFromX, of=Stanh):
    r"""$$X@GRAD = Out@GRAD \cdot scale\_a \cdot scale\_b (1 - \tanh^2(scale\_a X))$$"""
