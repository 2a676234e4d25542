"""Definitions of activations."""

from __future__ import annotations

import math
from typing import Any

from oprack.op import REQUIRED, Attr, GradOpDef, InferShapeContext, Input, OpDef, OpVersion, Output
from oprack.op.families import (
    MKLDNN_DATA_TYPE,
    USE_CUDNN,
    USE_MKLDNN,
    DoubleGradFromX,
    GradFromOut,
    GradFromX,
    Unary,
)
from oprack.op.sbp import leading
from oprack.types import AttrType
from oprack_math.composition import composed, masked


class Activation(Unary):
    """An element-wise function of one input that may take its memory."""

    inplace = {"X": "Out"}


class Brelu(Activation, type="brelu"):
    r"""$$Out = \min(\max(X, t\_min), t\_max)$$"""

    t_min = Attr(0.0, "Lower bound.")
    t_max = Attr(24.0, "Upper bound.")


class BreluGrad(GradFromX, of=Brelu):
    r"""$$X@GRAD = Out@GRAD \cdot [t\_min < X < t\_max]$$"""

    make_grad = masked


class Celu(Activation, type="celu"):
    r"""$$Out = \max(0, X) + \min(0, alpha (e^{X / alpha} - 1))$$"""

    alpha = Attr(1.0, "Size of the negative side; not 0.").check(lambda v: v != 0, "a number other than 0")


class CeluGrad(GradFromX, of=Celu):
    r"""$$X@GRAD = Out@GRAD$$ where $$X > 0$$, else $$Out@GRAD \cdot e^{X / alpha}$$"""


class CeluGradGrad(DoubleGradFromX, of=CeluGrad):
    r"""Where $$X > 0$$: X@GRAD = 0, grad_out@GRAD = grad_x@GRAD; else, with $$e = e^{X / alpha}$$,
    $$X@GRAD = grad\_x@GRAD \cdot grad\_out \cdot e / alpha$$ and $$grad\_out@GRAD = grad\_x@GRAD \cdot e$$"""


class Elu(Activation, type="elu"):
    r"""$$Out = X$$ where $$X \ge 0$$, else $$alpha (e^X - 1)$$"""

    alpha = Attr(1.0, "Size of the negative side.")
    use_mkldnn = USE_MKLDNN


class EluGrad(GradFromX, of=Elu, reads="X Out@GRAD Out"):
    r"""$$X@GRAD = Out@GRAD$$ where $$X > 0$$, else $$Out@GRAD (Out + alpha)$$"""


class EluGradGrad(DoubleGradFromX, of=EluGrad):
    r"""Where $$X > 0$$: X@GRAD = 0, grad_out@GRAD = grad_x@GRAD; else, with $$e = alpha \cdot e^X$$,
    $$X@GRAD = grad\_x@GRAD \cdot grad\_out \cdot e$$ and $$grad\_out@GRAD = grad\_x@GRAD \cdot e$$"""


class Gelu(Activation, type="gelu"):
    r"""$$Out = \frac{X}{2} (1 + \operatorname{erf}(X / \sqrt 2))$$, or with approximate
    $$Out = \frac{X}{2} (1 + \tanh(\sqrt{2 / \pi} (X + 0.044715 X^3)))$$"""

    approximate = Attr(False, "Use the formula with tanh.")
    use_mkldnn = USE_MKLDNN
    mkldnn_data_type = MKLDNN_DATA_TYPE


class GeluGrad(GradFromX, of=Gelu):
    r"""$$X@GRAD = Out@GRAD \cdot (\Phi(X) + X \phi(X))$$, or the derivative of the formula with tanh"""

    @composed
    def make_grad(o: Any, X: Any, Out_grad: Any) -> Any:
        if not o.attrs["approximate"]:
            density = o.exp(X=X * X * -0.5) * (1 / math.sqrt(2 * math.pi))
            return Out_grad * ((o.erf(X=X * math.sqrt(0.5)) + 1.0) * 0.5 + X * density)
        factor, square = math.sqrt(2 / math.pi), X * X
        t = o.tanh(X=X * (square * 0.044715 + 1.0) * factor)
        return Out_grad * (t + 1.0 + X * (1.0 - t * t) * (square * (3 * 0.044715) + 1.0) * factor) * 0.5


class HardShrink(Activation, type="hard_shrink"):
    r"""$$Out = X \cdot [X < -threshold \lor X > threshold]$$"""

    threshold = Attr(0.5, "Half the width of the flat part.")
    versions = OpVersion("hard_shrink").checkpoint(
        "a negative threshold keeps X, where both conditions used to count twice", ("bugfix", "threshold", None)
    )


class HardShrinkGrad(GradFromX, of=HardShrink):
    r"""$$X@GRAD = Out@GRAD \cdot [X < -threshold \lor X > threshold]$$"""

    make_grad = masked


class HardSigmoid(Activation, type="hard_sigmoid"):
    r"""$$Out = \min(\max(slope \cdot X + offset, 0), 1)$$"""

    slope = Attr(0.2, "Slope of the middle part.")
    offset = Attr(0.5, "Value at 0.")


class HardSigmoidGrad(GradFromOut, of=HardSigmoid):
    r"""$$X@GRAD = slope \cdot Out@GRAD \cdot [0 < Out < 1]$$"""

    make_grad = masked


class HardSwish(Activation, type="hard_swish"):
    r"""$$Out = X \cdot \min(\max(X + offset, 0), threshold) / scale$$"""

    threshold = Attr(6.0, "Upper bound of the clipped factor.")
    scale = Attr(6.0, "Divisor.")
    offset = Attr(3.0, "Shift before clipping.")
    use_mkldnn = USE_MKLDNN


class HardSwishGrad(GradFromX, of=HardSwish):
    r"""$$X@GRAD = Out@GRAD \cdot \frac{d}{dX} (X \cdot \min(\max(X + offset, 0), threshold) / scale)$$"""


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


class LogSigmoid(Activation, type="logsigmoid"):
    r"""$$Out = -\ln(1 + e^{-X})$$"""

    use_cudnn = USE_CUDNN
    use_mkldnn = USE_MKLDNN


class LogSigmoidGrad(GradFromX, of=LogSigmoid):
    r"""$$X@GRAD = Out@GRAD / (1 + e^X)$$"""

    make_grad = composed(lambda o, X, Out_grad: Out_grad * o.sigmoid(X=-X))


class Maxout(OpDef, type="maxout"):
    r"""Maximum over groups of neighbouring channels: $$Out_{c} = \max_{g < groups} X_{c \cdot groups + g}$$"""

    X = Input("Feature maps with channels along `axis`.")
    Out = Output("Shape of X with channels / groups along `axis`.")
    groups = Attr(REQUIRED, "Channels that make one output channel.", type=AttrType.INT).greater_than(1)
    axis = Attr(1, "Dim of the channels: 1 for NCHW, 3 or -1 for NHWC.")
    sbp = leading(("X",), ("Out",))

    def infer_shape(ctx: InferShapeContext) -> None:
        dims = list(ctx.dim("X"))
        axis, groups = ctx.attr("axis"), ctx.attr("groups")
        ctx.require(-len(dims) <= axis < len(dims), f"axis is {axis}, but X has shape {dims}")
        channels = dims[axis]
        if channels >= 0:
            ctx.require(channels % groups == 0, f"X has {channels} channels; expected a multiple of groups {groups}")
            dims[axis] = channels // groups
        ctx.set_dim("Out", dims)


class MaxoutGrad(GradOpDef, of=Maxout, reads="X Out"):
    """The gradient goes to the first channel of the group that holds the maximum."""


class Mish(Activation, type="mish"):
    r"""$$Out = X \tanh(s)$$ with $$s = X$$ where $$X > threshold$$, else $$\ln(1 + e^X)$$"""

    threshold = Attr(20.0, "From here on softplus is the identity.")
    use_mkldnn = USE_MKLDNN
    versions = OpVersion("mish").checkpoint(
        "use_mkldnn; softplus inside as in the softplus op", ("new_attr", "use_mkldnn", False)
    )


class MishGrad(GradFromX, of=Mish):
    r"""With $$t = \tanh(s)$$: $$X@GRAD = Out@GRAD (t + X (1 - t^2) s')$$"""

    @composed
    def make_grad(o: Any, X: Any, Out_grad: Any) -> Any:
        t = o.tanh(X=o.softplus(X=X, threshold=o.attrs["threshold"]))
        return Out_grad * (t + X * (1.0 - t * t) * o.sigmoid(X=X))


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

    make_grad = masked


class RRelu(OpDef, type="rrelu"):
    r"""$$Out = X$$ where $$X \ge 0$$, else $$a X$$ with a slope drawn from U(lower, upper) per element;
    with is_test $$a = (lower + upper) / 2$$"""

    X = Input("Tensor of any shape.")
    Out = Output("Shape and LoD of X.")
    Noise = Output("Slopes in effect: 1 where X is not negative.", intermediate=True, extra=True)
    is_test = Attr(False, "Use the mean slope.")
    lower = Attr(0.125, "Smallest slope.").between(0.0, 1.0)
    upper = Attr(1.0 / 3.0, "Largest slope.").between(0.0, 1.0)

    def infer_shape(ctx: InferShapeContext) -> None:
        ctx.require(
            ctx.attr("lower") <= ctx.attr("upper"),
            f"lower is {ctx.attr('lower')} and upper {ctx.attr('upper')}; expected lower <= upper",
        )
        for slot in ("Out", "Noise"):
            ctx.set_dim(slot, ctx.dim("X"))
            ctx.share_lod("X", slot)


class RReluGrad(GradOpDef, of=RRelu, reads="Noise", shape_of="X"):
    r"""$$X@GRAD = Noise \cdot Out@GRAD$$"""

    make_grad = masked


class Selu(Activation, type="selu"):
    r"""$$Out = scale \cdot X$$ where $$X > 0$$, else $$scale \cdot alpha (e^X - 1)$$"""

    scale = Attr(1.0507009873554805, "Factor that keeps the variance.")
    alpha = Attr(1.6732632423543772, "Size of the negative side.")


class SeluGrad(GradFromOut, of=Selu):
    r"""$$X@GRAD = scale \cdot Out@GRAD$$ where $$Out > 0$$, else $$Out@GRAD (Out + scale \cdot alpha)$$"""


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


class Silu(Activation, type="silu"):
    r"""$$Out = X / (1 + e^{-X})$$"""

    use_cudnn = USE_CUDNN
    use_mkldnn = USE_MKLDNN


class SiluGrad(GradFromX, of=Silu, reads="X Out@GRAD Out"):
    r"""With $$s = 1 / (1 + e^{-X})$$: $$X@GRAD = Out@GRAD (s + Out (1 - s))$$"""

    @composed
    def make_grad(o: Any, X: Any, Out_grad: Any) -> Any:
        s = o.sigmoid(X=X)
        return Out_grad * s * (X * (1.0 - s) + 1.0)


class SoftRelu(Activation, type="soft_relu"):
    r"""$$Out = \ln(1 + e^{\min(\max(X, -threshold), threshold)})$$"""

    threshold = Attr(40.0, "X is clipped to this range.")


class SoftReluGrad(GradFromOut, of=SoftRelu):
    r"""$$X@GRAD = Out@GRAD (1 - e^{-Out})$$ where $$-threshold < Out < threshold$$, else 0"""


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


class SoftShrink(Activation, type="softshrink"):
    r"""$$Out = X - lambda$$ where $$X > lambda$$, $$X + lambda$$ where $$X < -lambda$$, else 0"""

    lambda_ = Attr(0.5, "Half the width of the flat part.")


class SoftShrinkGrad(GradFromX, of=SoftShrink):
    r"""$$X@GRAD = Out@GRAD \cdot [|X| > lambda]$$"""

    make_grad = masked


class SoftSign(Activation, type="softsign"):
    r"""$$Out = X / (1 + |X|)$$"""

    use_cudnn = USE_CUDNN
    use_mkldnn = USE_MKLDNN


class SoftSignGrad(GradFromX, of=SoftSign):
    r"""$$X@GRAD = Out@GRAD / (1 + |X|)^2$$"""

    @composed
    def make_grad(o: Any, X: Any, Out_grad: Any) -> Any:
        size = o.abs(X=X) + 1.0
        return Out_grad / (size * size)


class Stanh(Activation, type="stanh"):
    r"""$$Out = scale\_b \tanh(scale\_a X)$$"""

    scale_a = Attr(0.67, "Factor of X.")
    scale_b = Attr(1.7159, "Factor of the result.")


class StanhGrad(GradFromX, of=Stanh):
    r"""$$X@GRAD = Out@GRAD \cdot scale\_a \cdot scale\_b (1 - \tanh^2(scale\_a X))$$"""

    @composed
    def make_grad(o: Any, X: Any, Out_grad: Any) -> Any:
        t = o.tanh(X=X * o.attrs["scale_a"])
        return Out_grad * (1.0 - t * t) * (o.attrs["scale_a"] * o.attrs["scale_b"])


class Swish(Activation, type="swish"):
    r"""$$Out = X / (1 + e^{-beta X})$$"""

    beta = Attr(1.0, "Factor inside the sigmoid.", extra=True)
    use_mkldnn = USE_MKLDNN


class SwishGrad(GradFromX, of=Swish):
    r"""With $$s = 1 / (1 + e^{-beta X})$$: $$X@GRAD = Out@GRAD \cdot s (1 + beta X (1 - s))$$"""

    @composed
    def make_grad(o: Any, X: Any, Out_grad: Any) -> Any:
        s = o.sigmoid(X=X * o.attrs["beta"])
        return Out_grad * s * (X * (1.0 - s) * o.attrs["beta"] + 1.0)


class TanhShrink(Activation, type="tanh_shrink"):
    r"""$$Out = X - \tanh(X)$$"""

    use_cudnn = USE_CUDNN
    use_mkldnn = USE_MKLDNN


class TanhShrinkGrad(GradFromX, of=TanhShrink):
    r"""$$X@GRAD = Out@GRAD \tanh^2(X)$$"""

    @composed
    def make_grad(o: Any, X: Any, Out_grad: Any) -> Any:
        t = o.tanh(X=X)
        return Out_grad * t * t


class ThresholdedRelu(Activation, type="thresholded_relu"):
    r"""$$Out = X \cdot [X > threshold]$$"""

    threshold = Attr(1.0, "Smaller values and the threshold itself become 0.")


class ThresholdedReluGrad(GradFromX, of=ThresholdedRelu):
    r"""$$X@GRAD = Out@GRAD \cdot [X > threshold]$$"""

    make_grad = masked
