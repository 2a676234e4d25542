"""The third gradients of sin, cos and tanh share their slots."""

from __future__ import annotations

from oprack.op import GradOpDef, Input, Output


class TripleGrad(
    GradOpDef,
    names={"grad_out": "grad_out_forward", "grad_x@GRAD": "grad_x_grad_forward"},
    grad_names={"grad_out@GRAD": "grad_out_grad@GRAD"},
):
    """Gradient of a double gradient; a gradient that is absent counts as zero."""

    grad_out_forward = Input("Gradient of Out in the first backward pass.")
    grad_x_grad_forward = Input("Gradient of X@GRAD in the second one.")
    grad_out_grad_grad = Input("Gradient of grad_out@GRAD.", dispensable=True, name="grad_out_grad@GRAD")
    grad_out_forward_grad = Output("Gradient of grad_out_forward.")
    grad_x_grad_forward_grad = Output("Gradient of grad_x_grad_forward.")
    inplace = {"grad_x_grad_forward": "grad_out_forward@GRAD"}


class TripleGradFromX(TripleGrad, like={"grad_out": "X", "grad_x@GRAD": "X"}, names={"X@GRAD": "grad_x"}):
    """Of a function whose double gradient reads X."""

    X = Input("Input of the forward op.")
    grad_x_grad = Input("Gradient of the double gradient's X@GRAD.", dispensable=True)
    X_grad = Output("Gradient of X.")
