"""eigvals: all of the op but its kernels."""

from __future__ import annotations

from oprack.op import InferShapeContext, InferVarTypeContext, Input, OpDef, Output, empty_grad
from oprack.op.sbp import leading
from oprack.types import complex_dtype

from oprack_linalg.ops._shapes import square_dims


class Eigvals(OpDef, type="eigvals"):
    r"""The complex numbers $\lambda$ for which $$\det(X - \lambda I) = 0$$"""

    X = Input("[..., N, N].")
    Out = Output("Complex [..., N], in no special order.")
    make_grad = empty_grad
    sbp = leading(("X",), ("Out",), lambda ctx: len(ctx.dim("X")) - 2)

    def infer_shape(ctx: InferShapeContext) -> None:
        ctx.set_dim("Out", square_dims(ctx, "X")[:-1])

    def infer_var_type(ctx: InferVarTypeContext) -> None:
        ctx.set_dtype("Out", complex_dtype(ctx.dtype("X")))
