"""The third gradients of sin, cos and tanh share their slots."""

from __future__ import annotations

from oprack.op import GradOp, GradOpDef, Input, Output
from oprack.op.families import USE_CUDNN, USE_MKLDNN, like


class TripleGrad(GradOpDef):
    """Gradient of a double gradient; a gradient that is absent counts as zero."""

    grad_out_forward = Input("Gradient of Out in the first backward pass.")
    grad_x_grad_forward = Input("Gradient of X@GRAD in the second one.")
    grad_out_grad_grad = Input("Gradient of grad_out@GRAD.", dispensable=True, name="grad_out_grad@GRAD")
    grad_out_forward_grad = Output("Gradient of grad_out_forward.")
    grad_x_grad_forward_grad = Output("Gradient of grad_x_grad_forward.")
    use_cudnn = USE_CUDNN
    use_mkldnn = USE_MKLDNN
    inplace = {"grad_x_grad_forward": "grad_out_forward@GRAD"}


class TripleGradFromX(TripleGrad):
    """Of a function whose double gradient reads X."""

    X = Input("Input of the forward op.")
    grad_x_grad = Input("Gradient of the double gradient's X@GRAD.", dispensable=True)
    X_grad = Output("Gradient of X.")

    def infer_shape(ctx):
        like(ctx, [("X@GRAD", "X"), ("grad_out_forward@GRAD", "X"), ("grad_x_grad_forward@GRAD", "X")])


def triple_grad_from_x(type):
    """make_grad of a double gradient whose gradient is a TripleGradFromX of that type."""

    def make_grad(fwd):
        slots = {
            "X": fwd.input("X"),
            "grad_out_forward": fwd.input("grad_out"),
            "grad_x_grad_forward": fwd.input("grad_x@GRAD"),
            "grad_x@GRAD": fwd.output_grad("X@GRAD") if fwd.has_output("X@GRAD") else None,
            "grad_out_grad@GRAD": fwd.output_grad("grad_out@GRAD") if fwd.has_output("grad_out@GRAD") else None,
            "X@GRAD": fwd.input_grad("X"),
            "grad_out_forward@GRAD": fwd.input_grad("grad_out"),
            "grad_x_grad_forward@GRAD": fwd.input_grad("grad_x@GRAD"),
        }
        return GradOp(type, attrs=fwd.attrs, slots=slots)

    return make_grad
