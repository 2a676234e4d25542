"""is_empty: all of the op but its kernel."""

from __future__ import annotations

from oprack.op import InferShapeContext, InferVarTypeContext, Input, OpDef, Output, empty_grad


class IsEmpty(OpDef, type="is_empty"):
    r"""$$Out = [|X| = 0]$$: whether X has no elements."""

    X = Input("Tensor of any shape.")
    Out = Output("bool, 0-D.")
    make_grad = empty_grad

    def infer_shape(ctx: InferShapeContext) -> None:
        ctx.set_dim("Out", ())

    def infer_var_type(ctx: InferVarTypeContext) -> None:
        ctx.set_dtype("Out", "bool")
