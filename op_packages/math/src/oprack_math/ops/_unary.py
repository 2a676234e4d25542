"""What the element-wise functions of this pack share beyond oprack.op.families."""

from __future__ import annotations

from oprack.op import GradOp, GradOpDef, Input, Output
from oprack.op.families import USE_CUDNN, USE_MKLDNN, GradFromOut, GradFromX, Unary, like


class Activation(Unary):
    """A unary op with the attributes of oneDNN's and cuDNN's kernels."""

    use_cudnn = USE_CUDNN
    use_mkldnn = USE_MKLDNN
    inplace = {"X": "Out"}


def float_of_integers(ctx):
    """infer_var_type of functions that turn integers into float32."""
    dtype = ctx.dtype("X")
    ctx.set_kind("Out", ctx.kind("X"))
    ctx.set_dtype("Out", "float32" if "int" in dtype else dtype)


def grad_of_constant(fwd):
    """`<type>_grad` that reads nothing but the shape of Out@GRAD."""
    return GradOp(fwd.type + "_grad", Out_grad=fwd.output_grad("Out"), X_grad=fwd.input_grad("X"), attrs=fwd.attrs)


class ActivationGradFromOut(GradFromOut):
    """GradFromOut with the attributes of oneDNN's and cuDNN's kernels."""

    use_cudnn = USE_CUDNN
    use_mkldnn = USE_MKLDNN


class ActivationGradFromX(GradFromX):
    """GradFromX with the attributes of oneDNN's and cuDNN's kernels."""

    use_cudnn = USE_CUDNN
    use_mkldnn = USE_MKLDNN


class ConstantGrad(GradOpDef):
    """Gradient of a function that is constant between its steps."""

    Out_grad = Input("Gradient of Out; only its shape is read.")
    X_grad = Output("Zeros in the shape of Out@GRAD.")
    use_cudnn = USE_CUDNN
    use_mkldnn = USE_MKLDNN
    inplace = {"Out@GRAD": "X@GRAD"}

    def infer_shape(ctx):
        like(ctx, [("X@GRAD", "Out@GRAD")])


class DoubleGradFromOut(GradOpDef):
    """Gradient of a GradFromOut op that knows X@GRAD instead of Out@GRAD."""

    Out = Input("Output of the forward op.")
    grad_x = Input("Gradient of X.")
    grad_x_grad = Input("Gradient of X@GRAD.")
    Out_grad = Output("Gradient of Out.")
    grad_out_grad = Output("Gradient of Out@GRAD.")
    use_cudnn = USE_CUDNN
    use_mkldnn = USE_MKLDNN
    inplace = {"grad_x@GRAD": "grad_out@GRAD"}

    def infer_shape(ctx):
        like(ctx, [("Out@GRAD", "Out"), ("grad_out@GRAD", "Out")])


def double_grad_from_out(fwd):
    """make_grad of a GradFromOut op whose gradient is a DoubleGradFromOut."""
    return GradOp(
        fwd.type + "_grad",
        Out=fwd.input("Out"),
        grad_x=fwd.output("X@GRAD"),
        grad_x_grad=fwd.output_grad("X@GRAD"),
        Out_grad=fwd.input_grad("Out"),
        grad_out_grad=fwd.input_grad("Out@GRAD"),
        attrs=fwd.attrs,
    )
