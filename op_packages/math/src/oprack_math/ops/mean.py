"""mean: all of the op but its kernels."""

from __future__ import annotations

from oprack.op import GradOpDef, Input, OpDef, Output
from oprack.op.families import grad_from_x, like


class Mean(OpDef, type="mean"):
    r"""$$Out = \frac1n \sum X$$ over all elements; of no elements, NaN."""

    X = Input("Tensor of any shape.")
    Out = Output("0-D; no LoD.")
    make_grad = grad_from_x

    def infer_shape(ctx):
        ctx.set_dim("Out", ())


class MeanGrad(GradOpDef, type="mean_grad"):
    r"""$$X@GRAD = Out@GRAD / n$$"""

    X = Input("Input of the forward op; only its shape is read.")
    Out_grad = Input("Gradient of Out, one element.")
    X_grad = Output("Gradient of X.")
    no_need_buffer_vars = ("X",)

    def infer_shape(ctx):
        like(ctx, [("X@GRAD", "X")])
