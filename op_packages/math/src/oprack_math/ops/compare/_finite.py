"""What tests for NaN and infinities share."""

from __future__ import annotations

from oprack.op import InferShapeContext, InferVarTypeContext, Input, OpDef, Output, empty_grad
from oprack.op.sbp import unary


class FiniteTest(OpDef):
    """An element-wise test; Out is bool."""

    X = Input("Tensor or SelectedRows of any shape.")
    Out = Output("bool, shape of X; it has no LoD.")
    make_grad = empty_grad
    sbp = unary

    def infer_shape(ctx: InferShapeContext) -> None:
        ctx.set_dim("Out", ctx.dim("X"))

    def infer_var_type(ctx: InferVarTypeContext) -> None:
        ctx.set_kind("Out", ctx.kind("X"))
        ctx.set_dtype("Out", "bool")


class AnyTest(OpDef):
    """Whether any element passes a test; programs of 1.x have it under the name without _v2."""

    X = Input("Tensor of any shape.")
    Out = Output("bool [1]")
    make_grad = empty_grad

    def infer_shape(ctx: InferShapeContext) -> None:
        ctx.set_dim("Out", (1,))

    def infer_var_type(ctx: InferVarTypeContext) -> None:
        ctx.set_dtype("Out", "bool")
