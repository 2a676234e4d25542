"""check_finite_and_unscale: all of the op but its kernel."""

from __future__ import annotations

from oprack.op import InferShapeContext, InferVarTypeContext, Input, OpDef, Output, dtype_of, empty_grad


class CheckFiniteAndUnscale(OpDef, type="check_finite_and_unscale"):
    r"""$$Out_i = X_i / Scale$$, and whether any X holds inf or nan"""

    X = Input("Gradients of the scaled loss.", duplicable=True)
    Scale = Input("Loss scale, one element.")
    Out = Output("Gradients of the loss; from the first one that is not finite on, 0.", duplicable=True)
    FoundInfinite = Output("One bool: a gradient is not finite, so Out is not to be used.")
    inplace = {"X": "Out"}
    make_grad = empty_grad
    expected_kernel_type = dtype_of("X")

    def infer_shape(ctx: InferShapeContext) -> None:
        ctx.set_dims("Out", ctx.dims("X"))
        ctx.set_dim("FoundInfinite", (1,))

    def infer_var_type(ctx: InferVarTypeContext) -> None:
        for i in range(ctx.input_count("X")):
            ctx.set_dtype("Out", ctx.dtype("X", i), i)
        ctx.set_dtype("FoundInfinite", "bool")
