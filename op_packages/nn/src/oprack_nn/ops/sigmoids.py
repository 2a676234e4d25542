"""Smooth activations: sigmoid, softplus, and what is made of them."""

from __future__ import annotations

from oprack.op import Attr, GradOp, GradOpDef, Input, OpVersion, Output
from oprack.op.families import (
    MKLDNN_DATA_TYPE,
    USE_CUDNN,
    USE_MKLDNN,
    DoubleGradFromX,
    GradFromOut,
    GradFromX,
    double_grad_from_x,
    grad_from_out,
    grad_from_x,
)

from oprack_nn.ops._activation import Activation


class Sigmoid(Activation, type="sigmoid"):
    r"""$$Out = 1 / (1 + e^{-X})$$"""

    use_cudnn = USE_CUDNN
    use_mkldnn = USE_MKLDNN
    make_grad = grad_from_out


class SigmoidGrad(GradFromOut, type="sigmoid_grad"):
    r"""$$X@GRAD = Out@GRAD \cdot Out (1 - Out)$$"""

    use_cudnn = USE_CUDNN
    use_mkldnn = USE_MKLDNN

    def make_grad(fwd):
        return GradOp(
            "sigmoid_grad_grad",
            Out=fwd.input("Out"),
            fwd_grad_out=fwd.input("Out@GRAD"),
            grad_x_grad=fwd.output_grad("X@GRAD"),
            Out_grad=fwd.input_grad("Out"),
            fwd_grad_out_grad=fwd.input_grad("Out@GRAD"),
            attrs=fwd.attrs,
        )


class SigmoidGradGrad(GradOpDef, type="sigmoid_grad_grad"):
    r"""$$Out@GRAD = (1 - 2 Out) \cdot fwd\_grad\_out \cdot grad\_x@GRAD$$,
    $$fwd\_grad\_out@GRAD = Out (1 - Out) \cdot grad\_x@GRAD$$"""

    Out = Input("Output of sigmoid.")
    fwd_grad_out = Input("Gradient of Out.")
    grad_x_grad = Input("Gradient of X@GRAD.")
    Out_grad = Output("Gradient of Out, shape of Out.")
    fwd_grad_out_grad = Output("Gradient of fwd_grad_out, shape of Out.")
    use_cudnn = USE_CUDNN
    use_mkldnn = USE_MKLDNN

    def infer_shape(ctx):
        for slot in ("Out@GRAD", "fwd_grad_out@GRAD"):
            ctx.set_dim(slot, ctx.dim("Out"))
            ctx.share_lod("Out", slot)

    def make_grad(fwd):
        return GradOp(
            "sigmoid_triple_grad",
            Out=fwd.input("Out"),
            fwd_grad_out=fwd.input("fwd_grad_out"),
            grad_grad_x=fwd.input("grad_x@GRAD"),
            grad_out_grad=fwd.output_grad("Out@GRAD"),
            grad_grad_out_grad=fwd.output_grad("fwd_grad_out@GRAD"),
            Out_grad=fwd.input_grad("Out"),
            fwd_grad_out_grad=fwd.input_grad("fwd_grad_out"),
            grad_grad_x_grad=fwd.input_grad("grad_x@GRAD"),
            attrs=fwd.attrs,
        )


class SigmoidTripleGrad(GradOpDef, type="sigmoid_triple_grad"):
    r"""Gradient of sigmoid_grad_grad. With $$a$$ = grad_out@GRAD, $$b$$ = grad_grad_out@GRAD, $$d$$ = fwd_grad_out and
    $$g$$ = grad_grad_x: $$Out@GRAD = (b (1 - 2 Out) - 2 a d) g$$, $$fwd\_grad\_out@GRAD = a (1 - 2 Out) g$$ and
    $$grad\_grad\_x@GRAD = a (1 - 2 Out) d + b Out (1 - Out)$$"""

    Out = Input("Output of sigmoid.")
    fwd_grad_out = Input("Gradient of Out.")
    grad_grad_x = Input("Gradient of X@GRAD.")
    grad_out_grad = Input("Gradient of the Out@GRAD that sigmoid_grad_grad wrote.")
    grad_grad_out_grad = Input("Gradient of its fwd_grad_out@GRAD.", dispensable=True)
    Out_grad = Output("Gradient of Out, shape of Out.")
    fwd_grad_out_grad = Output("Gradient of fwd_grad_out, shape of Out.")
    grad_grad_x_grad = Output("Gradient of grad_grad_x, shape of Out.")
    use_cudnn = USE_CUDNN
    use_mkldnn = USE_MKLDNN

    def infer_shape(ctx):
        for slot in ("Out@GRAD", "fwd_grad_out@GRAD", "grad_grad_x@GRAD"):
            ctx.set_dim(slot, ctx.dim("Out"))
            ctx.share_lod("Out", slot)


class LogSigmoid(Activation, type="logsigmoid"):
    r"""$$Out = -\ln(1 + e^{-X})$$"""

    use_cudnn = USE_CUDNN
    use_mkldnn = USE_MKLDNN
    make_grad = grad_from_x


class LogSigmoidGrad(GradFromX, type="logsigmoid_grad"):
    r"""$$X@GRAD = Out@GRAD / (1 + e^X)$$"""

    use_cudnn = USE_CUDNN
    use_mkldnn = USE_MKLDNN


class Silu(Activation, type="silu"):
    r"""$$Out = X / (1 + e^{-X})$$"""

    use_cudnn = USE_CUDNN
    use_mkldnn = USE_MKLDNN

    def make_grad(fwd):
        op = grad_from_x(fwd)
        op.inputs["Out"] = fwd.output("Out")
        return op


class SiluGrad(GradFromX, type="silu_grad"):
    r"""With $$s = 1 / (1 + e^{-X})$$: $$X@GRAD = Out@GRAD (s + Out (1 - s))$$"""

    Out = Input("Output of silu.")
    use_cudnn = USE_CUDNN
    use_mkldnn = USE_MKLDNN


class Swish(Activation, type="swish"):
    r"""$$Out = X / (1 + e^{-beta X})$$"""

    beta = Attr(1.0, "Factor inside the sigmoid.", extra=True)
    use_mkldnn = USE_MKLDNN
    make_grad = grad_from_x


class SwishGrad(GradFromX, type="swish_grad"):
    r"""With $$s = 1 / (1 + e^{-beta X})$$: $$X@GRAD = Out@GRAD \cdot s (1 + beta X (1 - s))$$"""

    beta = Attr(1.0, "Factor inside the sigmoid.", extra=True)
    use_mkldnn = USE_MKLDNN


class Gelu(Activation, type="gelu"):
    r"""$$Out = \frac{X}{2} (1 + \operatorname{erf}(X / \sqrt 2))$$, or with approximate
    $$Out = \frac{X}{2} (1 + \tanh(\sqrt{2 / \pi} (X + 0.044715 X^3)))$$"""

    approximate = Attr(False, "Use the formula with tanh.")
    use_mkldnn = USE_MKLDNN
    mkldnn_data_type = MKLDNN_DATA_TYPE
    make_grad = grad_from_x


class GeluGrad(GradFromX, type="gelu_grad"):
    r"""$$X@GRAD = Out@GRAD \cdot (\Phi(X) + X \phi(X))$$, or the derivative of the formula with tanh"""

    approximate = Attr(False, "Use the formula with tanh.")
    use_mkldnn = USE_MKLDNN
    mkldnn_data_type = MKLDNN_DATA_TYPE


class Mish(Activation, type="mish"):
    r"""$$Out = X \tanh(s)$$ with $$s = X$$ where $$X > threshold$$, else $$\ln(1 + e^X)$$"""

    threshold = Attr(20.0, "From here on softplus is the identity.")
    use_mkldnn = USE_MKLDNN
    make_grad = grad_from_x
    versions = OpVersion("mish").checkpoint(
        "use_mkldnn; softplus inside as in the softplus op", ("new_attr", "use_mkldnn", False)
    )


class MishGrad(GradFromX, type="mish_grad"):
    r"""With $$t = \tanh(s)$$: $$X@GRAD = Out@GRAD (t + X (1 - t^2) s')$$"""

    threshold = Attr(20.0, "From here on softplus is the identity.")
    use_mkldnn = USE_MKLDNN


class Softplus(Activation, type="softplus"):
    r"""$$Out = \ln(1 + e^{beta X}) / beta$$, or X where $$beta X > threshold$$"""

    beta = Attr(1.0, "Sharpness of the bend; not 0.").check(lambda v: v != 0, "a number other than 0")
    threshold = Attr(20.0, "From here on the op is the identity.")
    use_cudnn = USE_CUDNN
    use_mkldnn = USE_MKLDNN
    make_grad = grad_from_x
    versions = OpVersion("softplus").checkpoint(
        "the bend can be sharpened, and the linear part starts at a threshold",
        ("new_attr", "beta", 1.0),
        ("new_attr", "threshold", 20.0),
    )


class SoftplusGrad(GradFromX, type="softplus_grad"):
    r"""$$X@GRAD = Out@GRAD / (1 + e^{-beta X})$$, or Out@GRAD where $$beta X > threshold$$"""

    beta = Attr(1.0, "Sharpness of the bend; not 0.")
    threshold = Attr(20.0, "From here on the op is the identity.")
    use_cudnn = USE_CUDNN
    use_mkldnn = USE_MKLDNN
    make_grad = double_grad_from_x("softplus_double_grad")


class SoftplusDoubleGrad(DoubleGradFromX, type="softplus_double_grad"):
    r"""With $$s = 1 / (1 + e^{-beta X})$$: $$grad\_out@GRAD = s \cdot grad\_x@GRAD$$ and
    $$X@GRAD = beta \cdot s (1 - s) \cdot grad\_out \cdot grad\_x@GRAD$$; s is 1 where $$beta X > threshold$$"""

    beta = Attr(1.0, "Sharpness of the bend; not 0.")
    threshold = Attr(20.0, "From here on the op is the identity.")
    use_cudnn = USE_CUDNN
    use_mkldnn = USE_MKLDNN


class SoftRelu(Activation, type="soft_relu"):
    r"""$$Out = \ln(1 + e^{\min(\max(X, -threshold), threshold)})$$"""

    threshold = Attr(40.0, "X is clipped to this range.")
    make_grad = grad_from_out


class SoftReluGrad(GradFromOut, type="soft_relu_grad"):
    r"""$$X@GRAD = Out@GRAD (1 - e^{-Out})$$ where $$-threshold < Out < threshold$$, else 0"""

    threshold = Attr(40.0, "X is clipped to this range.")


class SoftSign(Activation, type="softsign"):
    r"""$$Out = X / (1 + |X|)$$"""

    use_cudnn = USE_CUDNN
    use_mkldnn = USE_MKLDNN
    make_grad = grad_from_x


class SoftSignGrad(GradFromX, type="softsign_grad"):
    r"""$$X@GRAD = Out@GRAD / (1 + |X|)^2$$"""

    use_cudnn = USE_CUDNN
    use_mkldnn = USE_MKLDNN


class TanhShrink(Activation, type="tanh_shrink"):
    r"""$$Out = X - \tanh(X)$$"""

    use_cudnn = USE_CUDNN
    use_mkldnn = USE_MKLDNN
    make_grad = grad_from_x


class TanhShrinkGrad(GradFromX, type="tanh_shrink_grad"):
    r"""$$X@GRAD = Out@GRAD \tanh^2(X)$$"""

    use_cudnn = USE_CUDNN
    use_mkldnn = USE_MKLDNN


class Stanh(Activation, type="stanh"):
    r"""$$Out = scale\_b \tanh(scale\_a X)$$"""

    scale_a = Attr(0.67, "Factor of X.")
    scale_b = Attr(1.7159, "Factor of the result.")
    make_grad = grad_from_x


class StanhGrad(GradFromX, type="stanh_grad"):
    r"""$$X@GRAD = Out@GRAD \cdot scale\_a \cdot scale\_b (1 - \tanh^2(scale\_a X))$$"""

    scale_a = Attr(0.67, "Factor of X.")
    scale_b = Attr(1.7159, "Factor of the result.")
