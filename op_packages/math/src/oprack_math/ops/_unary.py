"""What element-wise functions of one input share: slots, gradients of first and higher order, their makers."""

from __future__ import annotations

from oprack.op import GradOp, GradOpDef, Input, OpDef, Output

from oprack_math.ops._attrs import USE_CUDNN, USE_MKLDNN
from oprack_math.ops._elementwise import like


class Unary(OpDef):
    """An element-wise function of one input."""

    X = Input("Tensor of any shape.")
    Out = Output("Shape and LoD of X.")

    def infer_shape(ctx):
        ctx.set_dim("Out", ctx.dim("X"))
        ctx.share_lod("X", "Out")


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


def grad_from_x(fwd):
    """`<type>_grad` that reads X and Out@GRAD."""
    return GradOp(
        fwd.type + "_grad",
        X=fwd.input("X"),
        Out_grad=fwd.output_grad("Out"),
        X_grad=fwd.input_grad("X"),
        attrs=fwd.attrs,
    )


def grad_from_out(fwd):
    """`<type>_grad` that reads Out and Out@GRAD."""
    return GradOp(
        fwd.type + "_grad",
        Out=fwd.output("Out"),
        Out_grad=fwd.output_grad("Out"),
        X_grad=fwd.input_grad("X"),
        attrs=fwd.attrs,
    )


def grad_of_constant(fwd):
    """`<type>_grad` that reads nothing but the shape of Out@GRAD."""
    return GradOp(fwd.type + "_grad", Out_grad=fwd.output_grad("Out"), X_grad=fwd.input_grad("X"), attrs=fwd.attrs)


class GradFromX(GradOpDef):
    """Gradient whose derivative is a function of X."""

    X = Input("Input of the forward op.")
    Out_grad = Input("Gradient of Out.")
    X_grad = Output("Gradient of X, shape of X.")

    def infer_shape(ctx):
        like(ctx, [("X@GRAD", "X")])


class GradFromOut(GradOpDef):
    """Gradient whose derivative is a function of Out."""

    Out = Input("Output of the forward op.")
    Out_grad = Input("Gradient of Out.")
    X_grad = Output("Gradient of X, shape of Out.")
    use_cudnn = USE_CUDNN
    use_mkldnn = USE_MKLDNN
    inplace = {"Out@GRAD": "X@GRAD"}

    def infer_shape(ctx):
        like(ctx, [("X@GRAD", "Out")])


class ActivationGrad(GradFromX):
    """GradFromX with the attributes of oneDNN's and cuDNN's kernels."""

    use_cudnn = USE_CUDNN
    use_mkldnn = USE_MKLDNN
    inplace = {"Out@GRAD": "X@GRAD"}


class ConstantGrad(GradOpDef):
    """Gradient of a function that is constant between its steps."""

    Out_grad = Input("Gradient of Out; only its shape is read.")
    X_grad = Output("Zeros in the shape of Out@GRAD.")
    use_cudnn = USE_CUDNN
    use_mkldnn = USE_MKLDNN
    inplace = {"Out@GRAD": "X@GRAD"}

    def infer_shape(ctx):
        like(ctx, [("X@GRAD", "Out@GRAD")])


class DoubleGradFromX(GradOpDef):
    """Gradient of a GradFromX op."""

    X = Input("Input of the forward op.")
    grad_out = Input("Gradient of Out.")
    grad_x_grad = Input("Gradient of X@GRAD.")
    X_grad = Output("Gradient of X.")
    grad_out_grad = Output("Gradient of Out@GRAD.")
    inplace = {"grad_x@GRAD": "grad_out@GRAD"}

    def infer_shape(ctx):
        like(ctx, [("X@GRAD", "X"), ("grad_out@GRAD", "X")])


def double_grad_from_x(type):
    """make_grad of a GradFromX op whose gradient is the DoubleGradFromX of that type."""

    def make_grad(fwd):
        return GradOp(
            type,
            X=fwd.input("X"),
            grad_out=fwd.input("Out@GRAD"),
            grad_x_grad=fwd.output_grad("X@GRAD"),
            X_grad=fwd.input_grad("X"),
            grad_out_grad=fwd.input_grad("Out@GRAD"),
            attrs=fwd.attrs,
        )

    return make_grad


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
