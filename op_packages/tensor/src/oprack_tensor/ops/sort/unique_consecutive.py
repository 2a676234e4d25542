"""unique_consecutive: all of the op but its kernel."""

from __future__ import annotations

from oprack.op import Attr, InferShapeContext, InferVarTypeContext, Input, OpDef, OpVersion, Output, empty_grad
from oprack.types import AttrType

from oprack_tensor.dims import normal_axis, product


class UniqueConsecutive(OpDef, type="unique_consecutive"):
    r"""Out keeps the first of each run of equal elements: $$X_i \text{ where } i = 0 \lor X_i \ne X_{i-1}$$"""

    X = Input("Tensor of any shape.")
    Out = Output("[number of runs], or X with fewer places along `axis`.")
    Index = Output("Which run each element belongs to.", dispensable=True)
    Counts = Output("Length of each run.", dispensable=True)
    return_inverse = Attr(False, "Compute Index.")
    return_counts = Attr(False, "Compute Counts.")
    axis = Attr([], "Compare the parts of X along this dim; empty: its elements.", type=AttrType.INTS)
    dtype = Attr(5, "dtype of Index and Counts as a number: 2 int32, else int64.")
    make_grad = empty_grad
    versions = OpVersion("unique_consecutive").checkpoint(
        "Runs of parts, counts and indices.",
        ("new_output", "Counts", None),
        ("new_attr", "return_inverse", False),
        ("new_attr", "return_counts", False),
        ("new_attr", "axis", []),
    )

    def infer_shape(ctx: InferShapeContext) -> None:
        dims = list(ctx.dim("X"))
        count = product(dims)
        if ctx.attr("axis"):
            axis = normal_axis(ctx.op_type, ctx.attr("axis")[0], len(dims))
            count, dims[axis] = dims[axis], -1
        else:
            dims = [-1]
        ctx.set_dim("Out", dims)
        ctx.set_dim("Index", (count if ctx.attr("return_inverse") else -1,))
        ctx.set_dim("Counts", (-1,))

    def infer_var_type(ctx: InferVarTypeContext) -> None:
        ctx.set_dtype("Out", ctx.dtype("X"))
        for slot in ("Index", "Counts"):
            if ctx.has_output(slot):
                ctx.set_dtype(slot, "int32" if ctx.attr("dtype") == 2 else "int64")
