"""equal_all: all of the op but its kernel."""

from __future__ import annotations

from oprack.op import InferShapeContext, InferVarTypeContext, Input, OpDef, Output, empty_grad


class EqualAll(OpDef, type="equal_all"):
    r"""$$Out = \bigwedge [X = Y]$$ false for different shapes. Floats may differ by 1e-8, as in equal."""

    X = Input("Tensor of any shape.")
    Y = Input("Tensor of any shape.")
    Out = Output("bool, 0-D.")
    make_grad = empty_grad

    def infer_shape(ctx: InferShapeContext) -> None:
        ctx.set_dim("Out", ())

    def infer_var_type(ctx: InferVarTypeContext) -> None:
        ctx.set_dtype("Out", "bool")
