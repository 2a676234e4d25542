"""atan2 and its gradient."""

from __future__ import annotations

from oprack.op import GradOpDef, InferShapeContext, InferVarTypeContext, Input, OpDef, Output
from oprack.op.sbp import binary

from oprack_math.ops._broadcast import broadcast_last


class Atan2(OpDef, type="atan2"):
    r"""$$Out = \operatorname{atan2}(X1, X2)$$ the angle of the point (X2, X1), from $-\pi$ to $\pi$. Integers give
    float64."""

    X1 = Input("Tensor of any shape: ordinates.")
    X2 = Input("Tensor whose shape broadcasts with X1's: abscissas.")
    Out = Output("The broadcast shape, LoD of X1.")
    sbp = binary(slots=("X1", "X2", "Out"))

    def infer_shape(ctx: InferShapeContext) -> None:
        broadcast_last(ctx, "X1", "X2")

    def infer_var_type(ctx: InferVarTypeContext) -> None:
        dtype = ctx.dtype("X1")
        ctx.set_dtype("Out", "float64" if "int" in dtype else dtype)


class Atan2Grad(GradOpDef, of=Atan2, reads="X1 X2"):
    r"""$$X1@GRAD = Out@GRAD \cdot X2 / (X1^2 + X2^2),\quad X2@GRAD = -Out@GRAD \cdot X1 / (X1^2 + X2^2)$$"""
