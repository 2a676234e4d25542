"""Order along a dim, the largest, and the different ones."""

from __future__ import annotations

from oprack.op import (
    REQUIRED,
    Attr,
    GradOpDef,
    InferShapeContext,
    InferVarTypeContext,
    Input,
    OpDef,
    OpVersion,
    Output,
    dtype_of,
    empty_grad,
    normal_axis,
)
from oprack.op.sbp import SbpContext, Signature, factors, leading, letters
from oprack.types import AttrType

from oprack_tensor.dims import product


# What top_k and top_k_v2 share.
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


class Argsort(OpDef, type="argsort"):
    r"""$$Out_i = X_{Indices_i}, \quad Out_0 \le Out_1 \le \ldots$$ along a dim, or falling with `descending`; equals
    keep their order.
    """

    X = Input("Tensor of any shape.")
    Out = Output("Shape and LoD of X.")
    Indices = Output("int64, shape and LoD of X: places along `axis`.")
    axis = Attr(-1, "Along which dim; negative counts from the end.")
    descending = Attr(False, "Largest first.")

    def sbp(ctx: SbpContext) -> list[Signature]:
        names = letters(len(ctx.dim("X")))
        names[ctx.attr("axis", -1)] = None
        return factors({"X": names}, {"Out": names, "Indices": names})

    def infer_shape(ctx: InferShapeContext) -> None:
        ctx.axis("X")
        for slot in ("Out", "Indices"):
            ctx.set_dim(slot, ctx.dim("X"))
            ctx.share_lod("X", slot)

    def infer_var_type(ctx: InferVarTypeContext) -> None:
        ctx.set_dtype("Out", ctx.dtype("X"))
        ctx.set_dtype("Indices", "int64")


class ArgsortGrad(GradOpDef, of=Argsort, reads="X Indices Out@GRAD", shape_of="X"):
    """X@GRAD holds Out@GRAD at the places Indices."""

    def infer_shape(ctx: InferShapeContext) -> None:
        ctx.axis("X")
        ctx.same_size("X", "Out@GRAD")
        ctx.same_dims("Indices", "Out@GRAD")
        ctx.set_dim("X@GRAD", ctx.dim("X"))
        ctx.share_lod("X", "X@GRAD")


class Searchsorted(OpDef, type="searchsorted"):
    r"""$$Out_j = \#\{i : SortedSequence_i < Values_j\}$$ or $\le$ with right, in each row: where a value belongs."""

    SortedSequence = Input("[..., n], ascending along the last dim, or [n] for all values.")
    Values = Input("[..., m] with the same dims in front; of any shape for a sequence [n].")
    Out = Output("Shape of Values.")
    out_int32 = Attr(False, "Give int32 instead of int64.")
    right = Attr(False, "Behind equal elements instead of before them.")
    make_grad = empty_grad

    def infer_shape(ctx: InferShapeContext) -> None:
        sequence, values = ctx.dim("SortedSequence"), ctx.dim("Values")
        lead = zip(sequence[:-1], values[:-1], strict=False)
        fits = len(sequence) == len(values) and all(a == b or -1 in (a, b) for a, b in lead)
        ctx.require(
            len(sequence) == 1 or (len(sequence) > 1 and fits),
            f"SortedSequence has shape {list(sequence)} and Values {list(values)}; expected equal dims but for the "
            "last one, or a sequence [n]",
        )
        ctx.set_dim("Out", values)

    def infer_var_type(ctx: InferVarTypeContext) -> None:
        ctx.set_dtype("Out", "int32" if ctx.attr("out_int32") else "int64")


class TopK(TopKOp, type="top_k"):
    r"""$$Out_i = X_{Indices_i}, \quad Out_0 \ge Out_1 \ge \ldots \ge Out_{k-1}$$, the k largest along the last dim."""

    X = Input("Tensor of rank 1 or more.")
    Out = Output("X with k as last dim; LoD of X.")
    Indices = Output("int64, shape of Out: places along the last dim.")
    k = Attr(1, "How many.")
    sbp = leading(("X",), ("Out", "Indices"), lambda ctx: len(ctx.dim("X")) - 1)

    def infer_shape(ctx: InferShapeContext) -> None:
        infer_shape(ctx, -1)


class TopKGrad(GradOpDef, of=TopK, reads="X Indices Out@GRAD", shape_of="X", grads_of="X"):
    """X@GRAD holds Out@GRAD at the places Indices, 0 elsewhere."""


class TopKV2(TopKOp, type="top_k_v2"):
    r"""$$Out_i = X_{Indices_i}, \quad Out_0 \ge Out_1 \ge \ldots \ge Out_{k-1}$$, the k largest along a dim; the first
    of equals wins.

    Without `largest`, the k smallest in rising order.
    """

    Out = Output("X with k in place of dim `axis`; LoD of X.")
    Indices = Output("int64, shape of Out: places along `axis`.")
    k = Attr(1, "How many.")
    axis = Attr(-1, "Along which dim; negative counts from the end.")
    largest = Attr(True, "The largest instead of the smallest.")
    sorted = Attr(True, "In order; otherwise any order is allowed.")

    def sbp(ctx: SbpContext) -> list[Signature]:
        if ctx.has("K"):
            return []
        names = letters(len(ctx.dim("X")))
        names[ctx.attr("axis", -1)] = None
        return factors({"X": names}, {"Out": names, "Indices": names})

    def infer_shape(ctx: InferShapeContext) -> None:
        infer_shape(ctx, ctx.attr("axis"))


class TopKV2Grad(GradOpDef, of=TopKV2, reads="X K Indices Out@GRAD", shape_of="X K", grads_of="X"):
    """X@GRAD holds Out@GRAD at the places Indices, 0 elsewhere."""


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


class UniqueWithCounts(OpDef, type="unique_with_counts"):
    r"""Out lists each value of X once, in the order of first appearance: $$X_i = Out_{Index_i},\quad Count_j =
    \#\{i : Index_i = j\}$$"""

    X = Input("[n]")
    Out = Output("[number of different values]")
    Index = Output("[n], the place in Out of each value of X.")
    Count = Output("How often each value of Out appears.")
    dtype = Attr(REQUIRED, "dtype of Index and Count as a number: 2 int32, 3 int64.", type=AttrType.INT).in_set((2, 3))
    make_grad = empty_grad

    def infer_shape(ctx: InferShapeContext) -> None:
        dims = ctx.require_rank("X", 1)
        ctx.set_dim("Out", (-1,))
        ctx.set_dim("Index", dims)
        ctx.set_dim("Count", (-1,))

    def infer_var_type(ctx: InferVarTypeContext) -> None:
        ctx.set_dtype("Out", ctx.dtype("X"))
        for slot in ("Index", "Count"):
            ctx.set_dtype(slot, ctx.attr("dtype"))
