"""Piecewise activations: relu and its relatives."""

from __future__ import annotations

from oprack.op import Attr, GradOp, Input, OpVersion
from oprack.op.families import (
    USE_CUDNN,
    USE_MKLDNN,
    DoubleGradFromX,
    GradFromOut,
    GradFromX,
    double_grad_from_x,
    grad_from_out,
    grad_from_x,
)

from oprack_nn.ops._activation import Activation, LinearDoubleGrad


class Relu(Activation, type="relu"):
    r"""$$Out = \max(X, 0)$$"""

    use_cudnn = USE_CUDNN
    use_mkldnn = USE_MKLDNN
    make_grad = grad_from_out


class ReluGrad(GradFromOut, type="relu_grad"):
    r"""$$X@GRAD = Out@GRAD \cdot [Out > 0]$$"""

    use_cudnn = USE_CUDNN
    use_mkldnn = USE_MKLDNN

    def make_grad(fwd):
        return GradOp(
            "relu_grad_grad",
            Out=fwd.input("Out"),
            grad_x_grad=fwd.output_grad("X@GRAD"),
            grad_out_grad=fwd.input_grad("Out@GRAD"),
            attrs=fwd.attrs,
        )


class ReluGradGrad(LinearDoubleGrad, type="relu_grad_grad"):
    r"""$$grad\_out@GRAD = grad\_x@GRAD \cdot [Out > 0]$$"""

    Out = Input("Output of relu.")
    use_cudnn = USE_CUDNN
    use_mkldnn = USE_MKLDNN


class Relu6(Activation, type="relu6"):
    r"""$$Out = \min(\max(X, 0), threshold)$$"""

    threshold = Attr(6.0, "Upper bound.", extra=True)
    use_mkldnn = USE_MKLDNN
    make_grad = grad_from_out


class Relu6Grad(GradFromOut, type="relu6_grad"):
    r"""$$X@GRAD = Out@GRAD \cdot [0 < Out < threshold]$$"""

    threshold = Attr(6.0, "Upper bound.", extra=True)
    use_mkldnn = USE_MKLDNN


class LeakyRelu(Activation, type="leaky_relu"):
    r"""$$Out = X$$ where $$X > 0$$, else $$alpha \cdot X$$"""

    alpha = Attr(0.02, "Slope of the negative side.")
    use_mkldnn = USE_MKLDNN
    make_grad = grad_from_x
    versions = OpVersion("leaky_relu").checkpoint(
        "for alpha outside [0, 1] the sign of X decides, not the maximum of X and alpha X",
        ("bugfix", "alpha", None),
    )


class LeakyReluGrad(GradFromX, type="leaky_relu_grad"):
    r"""$$X@GRAD = Out@GRAD$$ where $$X > 0$$, else $$alpha \cdot Out@GRAD$$"""

    alpha = Attr(0.02, "Slope of the negative side.")
    use_mkldnn = USE_MKLDNN

    def make_grad(fwd):
        return GradOp(
            "leaky_relu_grad_grad",
            X=fwd.input("X"),
            grad_x_grad=fwd.output_grad("X@GRAD"),
            grad_out_grad=fwd.input_grad("Out@GRAD"),
            attrs=fwd.attrs,
        )


class LeakyReluGradGrad(LinearDoubleGrad, type="leaky_relu_grad_grad"):
    r"""$$grad\_out@GRAD = grad\_x@GRAD$$ where $$X > 0$$, else $$alpha \cdot grad\_x@GRAD$$"""

    X = Input("Input of leaky_relu.")
    alpha = Attr(0.02, "Slope of the negative side.")
    use_mkldnn = USE_MKLDNN


class Elu(Activation, type="elu"):
    r"""$$Out = X$$ where $$X \ge 0$$, else $$alpha (e^X - 1)$$"""

    alpha = Attr(1.0, "Size of the negative side.")
    use_mkldnn = USE_MKLDNN

    def make_grad(fwd):
        op = grad_from_x(fwd)
        op.inputs["Out"] = fwd.output("Out")
        return op


class EluGrad(GradFromX, type="elu_grad"):
    r"""$$X@GRAD = Out@GRAD$$ where $$X > 0$$, else $$Out@GRAD (Out + alpha)$$"""

    Out = Input("Output of elu.")
    alpha = Attr(1.0, "Size of the negative side.")
    use_mkldnn = USE_MKLDNN
    make_grad = double_grad_from_x("elu_grad_grad")


class EluGradGrad(DoubleGradFromX, type="elu_grad_grad"):
    r"""Where $$X > 0$$: X@GRAD = 0, grad_out@GRAD = grad_x@GRAD; else, with $$e = alpha \cdot e^X$$,
    $$X@GRAD = grad\_x@GRAD \cdot grad\_out \cdot e$$ and $$grad\_out@GRAD = grad\_x@GRAD \cdot e$$"""

    alpha = Attr(1.0, "Size of the negative side.")
    use_mkldnn = USE_MKLDNN


class Selu(Activation, type="selu"):
    r"""$$Out = scale \cdot X$$ where $$X > 0$$, else $$scale \cdot alpha (e^X - 1)$$"""

    scale = Attr(1.0507009873554805, "Factor that keeps the variance.")
    alpha = Attr(1.6732632423543772, "Size of the negative side.")
    make_grad = grad_from_out


class SeluGrad(GradFromOut, type="selu_grad"):
    r"""$$X@GRAD = scale \cdot Out@GRAD$$ where $$Out > 0$$, else $$Out@GRAD (Out + scale \cdot alpha)$$"""

    scale = Attr(1.0507009873554805, "Factor that keeps the variance.")
    alpha = Attr(1.6732632423543772, "Size of the negative side.")


class Celu(Activation, type="celu"):
    r"""$$Out = \max(0, X) + \min(0, alpha (e^{X / alpha} - 1))$$"""

    alpha = Attr(1.0, "Size of the negative side; not 0.").check(lambda v: v != 0, "a number other than 0")
    make_grad = grad_from_x


class CeluGrad(GradFromX, type="celu_grad"):
    r"""$$X@GRAD = Out@GRAD$$ where $$X > 0$$, else $$Out@GRAD \cdot e^{X / alpha}$$"""

    alpha = Attr(1.0, "Size of the negative side; not 0.")
    make_grad = double_grad_from_x("celu_grad_grad")


class CeluGradGrad(DoubleGradFromX, type="celu_grad_grad"):
    r"""Where $$X > 0$$: X@GRAD = 0, grad_out@GRAD = grad_x@GRAD; else, with $$e = e^{X / alpha}$$,
    $$X@GRAD = grad\_x@GRAD \cdot grad\_out \cdot e / alpha$$ and $$grad\_out@GRAD = grad\_x@GRAD \cdot e$$"""

    alpha = Attr(1.0, "Size of the negative side; not 0.")


class ThresholdedRelu(Activation, type="thresholded_relu"):
    r"""$$Out = X \cdot [X > threshold]$$"""

    threshold = Attr(1.0, "Smaller values and the threshold itself become 0.")
    make_grad = grad_from_x


class ThresholdedReluGrad(GradFromX, type="thresholded_relu_grad"):
    r"""$$X@GRAD = Out@GRAD \cdot [X > threshold]$$"""

    threshold = Attr(1.0, "Smaller values and the threshold itself become 0.")


class Brelu(Activation, type="brelu"):
    r"""$$Out = \min(\max(X, t\_min), t\_max)$$"""

    t_min = Attr(0.0, "Lower bound.")
    t_max = Attr(24.0, "Upper bound.")
    make_grad = grad_from_x


class BreluGrad(GradFromX, type="brelu_grad"):
    r"""$$X@GRAD = Out@GRAD \cdot [t\_min < X < t\_max]$$"""

    t_min = Attr(0.0, "Lower bound.")
    t_max = Attr(24.0, "Upper bound.")


class SoftShrink(Activation, type="softshrink"):
    r"""$$Out = X - lambda$$ where $$X > lambda$$, $$X + lambda$$ where $$X < -lambda$$, else 0"""

    lambda_ = Attr(0.5, "Half the width of the flat part.")
    make_grad = grad_from_x


class SoftShrinkGrad(GradFromX, type="softshrink_grad"):
    r"""$$X@GRAD = Out@GRAD \cdot [|X| > lambda]$$"""

    lambda_ = Attr(0.5, "Half the width of the flat part.")


class HardShrink(Activation, type="hard_shrink"):
    r"""$$Out = X \cdot [X < -threshold \lor X > threshold]$$"""

    threshold = Attr(0.5, "Half the width of the flat part.")
    make_grad = grad_from_x
    versions = OpVersion("hard_shrink").checkpoint(
        "a negative threshold keeps X, where both conditions used to count twice", ("bugfix", "threshold", None)
    )


class HardShrinkGrad(GradFromX, type="hard_shrink_grad"):
    r"""$$X@GRAD = Out@GRAD \cdot [X < -threshold \lor X > threshold]$$"""

    threshold = Attr(0.5, "Half the width of the flat part.")


class HardSigmoid(Activation, type="hard_sigmoid"):
    r"""$$Out = \min(\max(slope \cdot X + offset, 0), 1)$$"""

    slope = Attr(0.2, "Slope of the middle part.")
    offset = Attr(0.5, "Value at 0.")
    make_grad = grad_from_out


class HardSigmoidGrad(GradFromOut, type="hard_sigmoid_grad"):
    r"""$$X@GRAD = slope \cdot Out@GRAD \cdot [0 < Out < 1]$$"""

    slope = Attr(0.2, "Slope of the middle part.")
    offset = Attr(0.5, "Value at 0.")


class HardSwish(Activation, type="hard_swish"):
    r"""$$Out = X \cdot \min(\max(X + offset, 0), threshold) / scale$$"""

    threshold = Attr(6.0, "Upper bound of the clipped factor.")
    scale = Attr(6.0, "Divisor.")
    offset = Attr(3.0, "Shift before clipping.")
    use_mkldnn = USE_MKLDNN
    make_grad = grad_from_x


class HardSwishGrad(GradFromX, type="hard_swish_grad"):
    r"""$$X@GRAD = Out@GRAD \cdot \frac{d}{dX} (X \cdot \min(\max(X + offset, 0), threshold) / scale)$$"""

    threshold = Attr(6.0, "Upper bound of the clipped factor.")
    scale = Attr(6.0, "Divisor.")
    offset = Attr(3.0, "Shift before clipping.")
    use_mkldnn = USE_MKLDNN
