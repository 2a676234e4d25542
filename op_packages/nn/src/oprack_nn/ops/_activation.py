"""What activation ops share: one input, one output of the same shape, and a gradient from either of them."""

from __future__ import annotations

from oprack.op import Attr, GradOp, GradOpDef, Input, OpDef, Output

USE_MKLDNN = Attr(False, "Run oneDNN's kernel where its plugin is installed.", extra=True)
USE_CUDNN = Attr(False, "Run cuDNN's kernel where its plugin is installed.", extra=True)
MKLDNN_DATA_TYPE = Attr("float32", "dtype of oneDNN's kernel.", extra=True)


def grad_from_out(fwd):
    """`<type>_grad` that reads Out and Out@GRAD."""
    return GradOp(
        fwd.type + "_grad",
        Out=fwd.output("Out"),
        Out_grad=fwd.output_grad("Out"),
        X_grad=fwd.input_grad("X"),
        attrs=fwd.attrs,
    )


def grad_from_x(fwd):
    """`<type>_grad` that reads X and Out@GRAD."""
    return GradOp(
        fwd.type + "_grad",
        X=fwd.input("X"),
        Out_grad=fwd.output_grad("Out"),
        X_grad=fwd.input_grad("X"),
        attrs=fwd.attrs,
    )


class Activation(OpDef):
    """An element-wise function of one input."""

    X = Input("Tensor of any shape.")
    Out = Output("Shape, dtype and LoD of X.")
    inplace = {"X": "Out"}

    def infer_shape(ctx):
        ctx.set_dim("Out", ctx.dim("X"))
        ctx.share_lod("X", "Out")


class GradFromOut(GradOpDef):
    """Gradient of an activation whose derivative is a function of Out."""

    Out = Input("Output of the forward op.")
    Out_grad = Input("Gradient of Out.")
    X_grad = Output("Gradient of X, shape of Out.")
    inplace = {"Out@GRAD": "X@GRAD"}

    def infer_shape(ctx):
        ctx.set_dim("X@GRAD", ctx.dim("Out"))
        ctx.share_lod("Out", "X@GRAD")


class GradFromX(GradOpDef):
    """Gradient of an activation whose derivative is a function of X."""

    X = Input("Input of the forward op.")
    Out_grad = Input("Gradient of Out.")
    X_grad = Output("Gradient of X, shape of X.")
    inplace = {"Out@GRAD": "X@GRAD"}

    def infer_shape(ctx):
        ctx.set_dim("X@GRAD", ctx.dim("X"))
        ctx.share_lod("X", "X@GRAD")


class LinearDoubleGrad(GradOpDef):
    """Gradient of a gradient that is linear in Out@GRAD and does not depend on X otherwise but by a mask."""

    grad_x_grad = Input("Gradient of X@GRAD.")
    grad_out_grad = Output("Gradient of Out@GRAD, shape of grad_x@GRAD.")
    inplace = {"grad_x@GRAD": "grad_out@GRAD"}

    def infer_shape(ctx):
        ctx.set_dim("grad_out@GRAD", ctx.dim("grad_x@GRAD"))
        ctx.share_lod("grad_x@GRAD", "grad_out@GRAD")


class CurvedDoubleGrad(GradOpDef):
    """Gradient of a gradient that depends on X and on Out@GRAD."""

    X = Input("Input of the forward op.")
    grad_out = Input("Gradient of Out.")
    grad_x_grad = Input("Gradient of X@GRAD.")
    X_grad = Output("Gradient of X, shape of X.")
    grad_out_grad = Output("Gradient of Out@GRAD, shape of X.")

    def infer_shape(ctx):
        for slot in ("X@GRAD", "grad_out@GRAD"):
            ctx.set_dim(slot, ctx.dim("X"))
            ctx.share_lod("X", slot)


def curved_double_grad(type):
    """make_grad of a `<type>_grad` op whose gradient is a CurvedDoubleGrad of that type."""

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
