"""What top_k and top_k_v2 share."""

from __future__ import annotations

from oprack.op import InferShapeContext, InferVarTypeContext, Input, OpDef, dtype_of, normal_axis


class TopKOp(OpDef):
    """The k largest elements along a dim, and where they were."""

    X = Input("Tensor of any shape.")
    K = Input("One-element tensor that overrides `k`.", dispensable=True)
    expected_kernel_type = dtype_of("X")

    def infer_var_type(ctx: InferVarTypeContext) -> None:
        ctx.set_dtype("Out", ctx.dtype("X"))
        ctx.set_dtype("Indices", "int64")


def infer_shape(ctx: InferShapeContext, axis: int) -> None:
    """Sets Out and Indices."""
    dims, k = list(ctx.dim("X")), ctx.attr("k")
    if ctx.has_input("K"):
        value = ctx.scalar("K")
        k = -1 if value is None else int(value)
    axis = normal_axis(ctx.op_type, axis, max(len(dims), 1))
    if dims:
        ctx.require(
            (k >= 1 or not ctx.is_runtime) and (dims[axis] < 0 or k <= dims[axis]),
            f"k is {k} but X {dims} has size {dims[axis]} along axis {axis}; expected 1 <= k <= {dims[axis]}",
        )
        dims[axis] = k
    for slot in ("Out", "Indices"):
        ctx.set_dim(slot, dims)
        ctx.share_lod("X", slot)
