"""What the activations of this pack share beyond oprack.op.families."""

from __future__ import annotations

from oprack.op import GradOpDef, Input, Output
from oprack.op.families import Unary, like


class Activation(Unary):
    """An element-wise function of one input that may take its memory."""

    inplace = {"X": "Out"}


class LinearDoubleGrad(GradOpDef):
    """Gradient of a gradient that is linear in Out@GRAD and does not depend on X otherwise but by a mask."""

    grad_x_grad = Input("Gradient of X@GRAD.")
    grad_out_grad = Output("Gradient of Out@GRAD, shape of grad_x@GRAD.")
    inplace = {"grad_x@GRAD": "grad_out@GRAD"}

    def infer_shape(ctx):
        like(ctx, [("grad_out@GRAD", "grad_x@GRAD")])
