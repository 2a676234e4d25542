"""Piecewise activations: relu and its relatives."""

from __future__ import annotations

from oprack.op import Attr, GradOpDef, OpVersion
from oprack.op.families import (
    USE_CUDNN,
    USE_MKLDNN,
    DoubleGradFromX,
    GradFromOut,
    GradFromX,
)

from oprack_nn.ops._activation import Activation


class Relu(Activation, type="relu"):
    r"""$$Out = \max(X, 0)$$"""

    use_cudnn = USE_CUDNN
    use_mkldnn = USE_MKLDNN


class ReluGrad(GradFromOut, of=Relu):
    r"""$$X@GRAD = Out@GRAD \cdot [Out > 0]$$"""


class ReluGradGrad(
    GradOpDef,
    of=ReluGrad,
    reads="X@GRAD@GRAD Out",
    grads_of="Out@GRAD",
    like="X@GRAD@GRAD",
    names={"X@GRAD": "grad_x", "Out@GRAD": "grad_out"},
):
    r"""$$grad\_out@GRAD = grad\_x@GRAD \cdot [Out > 0]$$"""

    inplace = {"grad_x@GRAD": "grad_out@GRAD"}


class Relu6(Activation, type="relu6"):
    r"""$$Out = \min(\max(X, 0), threshold)$$"""

    threshold = Attr(6.0, "Upper bound.", extra=True)
    use_mkldnn = USE_MKLDNN


class Relu6Grad(GradFromOut, of=Relu6):
    r"""$$X@GRAD = Out@GRAD \cdot [0 < Out < threshold]$$"""


class LeakyRelu(Activation, type="leaky_relu"):
    r"""$$Out = X$$ where $$X > 0$$, else $$alpha \cdot X$$"""

    alpha = Attr(0.02, "Slope of the negative side.")
    use_mkldnn = USE_MKLDNN
    versions = OpVersion("leaky_relu").checkpoint(
        "for alpha outside [0, 1] the sign of X decides, not the maximum of X and alpha X",
        ("bugfix", "alpha", None),
    )


class LeakyReluGrad(GradFromX, of=LeakyRelu):
    r"""$$X@GRAD = Out@GRAD$$ where $$X > 0$$, else $$alpha \cdot Out@GRAD$$"""


class LeakyReluGradGrad(
    GradOpDef,
    of=LeakyReluGrad,
    reads="X@GRAD@GRAD X",
    grads_of="Out@GRAD",
    like="X@GRAD@GRAD",
    names={"X@GRAD": "grad_x", "Out@GRAD": "grad_out"},
):
    r"""$$grad\_out@GRAD = grad\_x@GRAD$$ where $$X > 0$$, else $$alpha \cdot grad\_x@GRAD$$"""

    inplace = {"grad_x@GRAD": "grad_out@GRAD"}


class Elu(Activation, type="elu"):
    r"""$$Out = X$$ where $$X \ge 0$$, else $$alpha (e^X - 1)$$"""

    alpha = Attr(1.0, "Size of the negative side.")
    use_mkldnn = USE_MKLDNN


class EluGrad(GradFromX, of=Elu, reads="X Out@GRAD Out"):
    r"""$$X@GRAD = Out@GRAD$$ where $$X > 0$$, else $$Out@GRAD (Out + alpha)$$"""


class EluGradGrad(DoubleGradFromX, of=EluGrad):
    r"""Where $$X > 0$$: X@GRAD = 0, grad_out@GRAD = grad_x@GRAD; else, with $$e = alpha \cdot e^X$$,
    $$X@GRAD = grad\_x@GRAD \cdot grad\_out \cdot e$$ and $$grad\_out@GRAD = grad\_x@GRAD \cdot e$$"""


class Selu(Activation, type="selu"):
    r"""$$Out = scale \cdot X$$ where $$X > 0$$, else $$scale \cdot alpha (e^X - 1)$$"""

    scale = Attr(1.0507009873554805, "Factor that keeps the variance.")
    alpha = Attr(1.6732632423543772, "Size of the negative side.")


class SeluGrad(GradFromOut, of=Selu):
    r"""$$X@GRAD = scale \cdot Out@GRAD$$ where $$Out > 0$$, else $$Out@GRAD (Out + scale \cdot alpha)$$"""


class Celu(Activation, type="celu"):
    r"""$$Out = \max(0, X) + \min(0, alpha (e^{X / alpha} - 1))$$"""

    alpha = Attr(1.0, "Size of the negative side; not 0.").check(lambda v: v != 0, "a number other than 0")


class CeluGrad(GradFromX, of=Celu):
    r"""$$X@GRAD = Out@GRAD$$ where $$X > 0$$, else $$Out@GRAD \cdot e^{X / alpha}$$"""


class CeluGradGrad(DoubleGradFromX, of=CeluGrad):
    r"""Where $$X > 0$$: X@GRAD = 0, grad_out@GRAD = grad_x@GRAD; else, with $$e = e^{X / alpha}$$,
    $$X@GRAD = grad\_x@GRAD \cdot grad\_out \cdot e / alpha$$ and $$grad\_out@GRAD = grad\_x@GRAD \cdot e$$"""


class ThresholdedRelu(Activation, type="thresholded_relu"):
    r"""$$Out = X \cdot [X > threshold]$$"""

    threshold = Attr(1.0, "Smaller values and the threshold itself become 0.")


class ThresholdedReluGrad(GradFromX, of=ThresholdedRelu):
    r"""$$X@GRAD = Out@GRAD \cdot [X > threshold]$$"""


class Brelu(Activation, type="brelu"):
    r"""$$Out = \min(\max(X, t\_min), t\_max)$$"""

    t_min = Attr(0.0, "Lower bound.")
    t_max = Attr(24.0, "Upper bound.")


class BreluGrad(GradFromX, of=Brelu):
    r"""$$X@GRAD = Out@GRAD \cdot [t\_min < X < t\_max]$$"""


class SoftShrink(Activation, type="softshrink"):
    r"""$$Out = X - lambda$$ where $$X > lambda$$, $$X + lambda$$ where $$X < -lambda$$, else 0"""

    lambda_ = Attr(0.5, "Half the width of the flat part.")


class SoftShrinkGrad(GradFromX, of=SoftShrink):
    r"""$$X@GRAD = Out@GRAD \cdot [|X| > lambda]$$"""


class HardShrink(Activation, type="hard_shrink"):
    r"""$$Out = X \cdot [X < -threshold \lor X > threshold]$$"""

    threshold = Attr(0.5, "Half the width of the flat part.")
    versions = OpVersion("hard_shrink").checkpoint(
        "a negative threshold keeps X, where both conditions used to count twice", ("bugfix", "threshold", None)
    )


class HardShrinkGrad(GradFromX, of=HardShrink):
    r"""$$X@GRAD = Out@GRAD \cdot [X < -threshold \lor X > threshold]$$"""


class HardSigmoid(Activation, type="hard_sigmoid"):
    r"""$$Out = \min(\max(slope \cdot X + offset, 0), 1)$$"""

    slope = Attr(0.2, "Slope of the middle part.")
    offset = Attr(0.5, "Value at 0.")


class HardSigmoidGrad(GradFromOut, of=HardSigmoid):
    r"""$$X@GRAD = slope \cdot Out@GRAD \cdot [0 < Out < 1]$$"""


class HardSwish(Activation, type="hard_swish"):
    r"""$$Out = X \cdot \min(\max(X + offset, 0), threshold) / scale$$"""

    threshold = Attr(6.0, "Upper bound of the clipped factor.")
    scale = Attr(6.0, "Divisor.")
    offset = Attr(3.0, "Shift before clipping.")
    use_mkldnn = USE_MKLDNN


class HardSwishGrad(GradFromX, of=HardSwish):
    r"""$$X@GRAD = Out@GRAD \cdot \frac{d}{dX} (X \cdot \min(\max(X + offset, 0), threshold) / scale)$$"""
