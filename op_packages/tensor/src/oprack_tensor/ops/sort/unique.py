"""unique: all of the op but its kernel."""

from __future__ import annotations

from oprack.op import Attr, InferShapeContext, InferVarTypeContext, Input, OpDef, Output, empty_grad
from oprack.types import AttrType

from oprack_tensor.dims import normal_axis, product


class Unique(OpDef, type="unique"):
    r"""$$X_i = Out_{Index_i}, \quad Out_j = X_{Indices_j}, \quad Counts_j = |\{i : X_i = Out_j\}|$$

    Each value of X once: in ascending order with is_sorted, else in the order of first appearance.
    """

    X = Input("Tensor; 1-D when is_sorted is false.")
    Out = Output("[number of different values], or X with fewer places along `axis`.")
    Indices = Output("Place in X where each value of Out appears first.", dispensable=True)
    Index = Output("Place in Out of each value of X.")
    Counts = Output("How often each value of Out appears.", dispensable=True)
    return_index = Attr(False, "Compute Indices (with is_sorted).")
    return_inverse = Attr(False, "Compute Index (without is_sorted it always is).")
    return_counts = Attr(False, "Compute Counts (with is_sorted).")
    axis = Attr([], "Compare the parts of X along this dim; empty: its elements.", type=AttrType.INTS)
    dtype = Attr(3, "dtype of Indices, Index and Counts.")
    is_sorted = Attr(False, "In ascending order.")
    make_grad = empty_grad

    def infer_shape(ctx: InferShapeContext) -> None:
        dims = list(ctx.dim("X"))
        n = product(dims)
        if ctx.attr("axis") and ctx.attr("is_sorted"):
            axis = normal_axis(ctx.op_type, ctx.attr("axis")[0], len(dims))
            n = dims[axis]
            dims[axis] = -1
        else:
            dims = [-1]
        ctx.set_dim("Out", dims)
        ctx.set_dim("Indices", (-1,))
        ctx.set_dim("Counts", (-1,))
        ctx.set_dim("Index", (n,))

    def infer_var_type(ctx: InferVarTypeContext) -> None:
        ctx.set_dtype("Out", ctx.dtype("X"))
        for slot in ("Indices", "Index", "Counts"):
            if ctx.has_output(slot):
                ctx.set_dtype(slot, ctx.attr("dtype"))
