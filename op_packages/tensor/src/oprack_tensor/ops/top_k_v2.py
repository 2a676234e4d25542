"""top_k_v2 and top_k: all of the ops but their kernels."""

from __future__ import annotations

from oprack.op import Attr, GradOpDef, Input, OpDef, Output, dtype_of, normal_axis


def _infer_shape(ctx, axis):
    dims, k = list(ctx.dim("X")), ctx.attr("k")
    if ctx.has_input("K"):
        value = ctx.value("K")
        k = -1 if value is None else int(value.reshape(-1)[0])
    if dims:
        axis = normal_axis(ctx.op_type, axis, len(dims))
        ctx.require(
            (k >= 1 or not ctx.is_runtime) and (dims[axis] < 0 or k <= dims[axis]),
            f"k is {k} but X {dims} has size {dims[axis]} along axis {axis}; expected 1 <= k <= {dims[axis]}",
        )
        dims[axis] = k
    for slot in ("Out", "Indices"):
        ctx.set_dim(slot, dims)
        ctx.share_lod("X", slot)


def _infer_var_type(ctx):
    ctx.set_dtype("Out", ctx.dtype("X"))
    ctx.set_dtype("Indices", "int64")


class TopKV2(OpDef, type="top_k_v2"):
    """The k largest or smallest elements along a dim, in order, and where they were; the first of equals wins."""

    X = Input("Tensor of any shape.")
    K = Input("One-element tensor that overrides `k`.", dispensable=True)
    Out = Output("X with k in place of dim `axis`; LoD of X.")
    Indices = Output("int64, shape of Out: places along `axis`.")
    k = Attr(1, "How many.")
    axis = Attr(-1, "Along which dim; negative counts from the end.")
    largest = Attr(True, "The largest instead of the smallest.")
    sorted = Attr(True, "In order; otherwise any order is allowed.")
    expected_kernel_type = dtype_of("X")
    infer_var_type = _infer_var_type

    def infer_shape(ctx):
        _infer_shape(ctx, ctx.attr("axis"))


class TopKV2Grad(GradOpDef, of=TopKV2, reads="X K Indices Out@GRAD", shape_of="X K", grads_of="X"):
    """X@GRAD holds Out@GRAD at the places Indices, 0 elsewhere."""


class TopK(OpDef, type="top_k"):
    """The k largest elements along the last dim, largest first, and where they were."""

    X = Input("Tensor of rank 1 or more.")
    K = Input("One-element tensor that overrides `k`.", dispensable=True)
    Out = Output("X with k as last dim; LoD of X.")
    Indices = Output("int64, shape of Out: places along the last dim.")
    k = Attr(1, "How many.")
    expected_kernel_type = dtype_of("X")
    infer_var_type = _infer_var_type

    def infer_shape(ctx):
        _infer_shape(ctx, -1)


class TopKGrad(GradOpDef, of=TopK, reads="X Indices Out@GRAD", shape_of="X", grads_of="X"):
    """X@GRAD holds Out@GRAD at the places Indices, 0 elsewhere."""
