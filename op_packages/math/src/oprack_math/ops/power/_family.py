"""What powers, roots and logarithms share: dtypes of integers, and second gradients that read the output."""

from __future__ import annotations

from oprack.op import GradOpDef, InferShapeContext, InferVarTypeContext, Input, Output
from oprack.op.families import like


def float_of_integers(ctx: InferVarTypeContext) -> None:
    """infer_var_type of functions that turn integers into float32."""
    dtype = ctx.dtype("X")
    ctx.set_kind("Out", ctx.kind("X"))
    ctx.set_dtype("Out", "float32" if "int" in dtype else dtype)


class DoubleGradFromOut(GradOpDef, names={"Out@GRAD": "grad_out", "X@GRAD": "grad_x"}):
    """Gradient of a GradFromOut op that knows X@GRAD instead of Out@GRAD."""

    Out = Input("Output of the forward op.")
    grad_x = Input("Gradient of X.")
    grad_x_grad = Input("Gradient of X@GRAD.")
    Out_grad = Output("Gradient of Out.")
    grad_out_grad = Output("Gradient of Out@GRAD.")
    inplace = {"grad_x@GRAD": "grad_out@GRAD"}

    def infer_shape(ctx: InferShapeContext) -> None:
        like(ctx, [("Out@GRAD", "Out"), ("grad_out@GRAD", "Out")])
