"""bincount: all of the op but its kernel."""

from __future__ import annotations

from oprack.op import Attr, InferShapeContext, InferVarTypeContext, Input, OpDef, Output, dtype_of, empty_grad


class Bincount(OpDef, type="bincount"):
    r"""$$Out_v = \sum_{i: X_i = v} Weights_i$$ or the number of these i."""

    X = Input("[n] integers of at least 0.")
    Weights = Input("[n]", dispensable=True)
    Out = Output("[the greatest element and 1 more, or minlength]; int64, float32 for such Weights, else float64.")
    minlength = Attr(0, "Length of Out at least.", support_tensor=True).at_least(0)
    expected_kernel_type = dtype_of("X")
    make_grad = empty_grad

    def infer_shape(ctx: InferShapeContext) -> None:
        ctx.require_rank("X", 1)
        if ctx.has_input("Weights"):
            ctx.same_dims("Weights", "X")
        ctx.set_dim("Out", (-1,))

    def infer_var_type(ctx: InferVarTypeContext) -> None:
        weights = ctx.dtype("Weights") if ctx.has_input("Weights") else ""
        ctx.set_dtype("Out", "int64" if not weights else weights if weights == "float32" else "float64")
