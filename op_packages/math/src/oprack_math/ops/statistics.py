"""Definitions of order statistics and of counts."""

from __future__ import annotations

from oprack.op import (
    Attr,
    GradOpDef,
    InferShapeContext,
    InferVarTypeContext,
    Input,
    OpDef,
    Output,
    dtype_of,
    empty_grad,
)
from oprack.types import AttrType

from oprack_math.ops._reduce import KEEP_DIM, reduced_dims

# Ops that pick one element along a dim and say which it is.
AXIS = Attr(-1, "Dim to reduce; negative counts from the end.")


class Pick(OpDef):
    """One element for each row along dim `axis`, an attribute as `keepdim` is."""

    X = Input("Tensor of any shape.")
    Out = Output("X's shape without dim `axis`; no LoD.")
    Indices = Output("int64, the place along the dim of each element of Out, whose shape it has.")

    def infer_shape(ctx: InferShapeContext) -> None:
        dims = reduced_dims(ctx, ctx.dim("X"), [ctx.attr("axis")], ctx.attr("keepdim"), False, elements=True)
        ctx.set_dim("Out", dims)
        ctx.set_dim("Indices", dims)

    def infer_var_type(ctx: InferVarTypeContext) -> None:
        ctx.set_dtype("Out", ctx.dtype("X"))
        ctx.set_dtype("Indices", "int64")


class PickGrad(GradOpDef, reads="X Indices Out@GRAD", shape_of="X"):
    """Gradient of a Pick: that of Out, where the element was."""

    expected_kernel_type = dtype_of("Out@GRAD")


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


class Histogram(OpDef, type="histogram"):
    r"""$$Out_b = \#\{x : \lfloor bins (x - min) / (max - min) \rfloor = b\}$$ max itself belongs to the last bin.

    With min = max = 0 the range is that of X, widened by 1 to both sides when X holds one value only. What lies outside
    of the range is not counted.
    """

    X = Input("Tensor of any shape.")
    Out = Output("int64 [bins]")
    bins = Attr(100, "How many bins.", type=AttrType.LONG).at_least(1)
    min = Attr(0, "Begin of the first bin.")
    max = Attr(0, "End of the last bin.")
    make_grad = empty_grad

    def infer_shape(ctx: InferShapeContext) -> None:
        low, high = ctx.attr("min"), ctx.attr("max")
        ctx.require(low <= high, f"min is {low} and max {high}; expected min <= max")
        ctx.set_dim("Out", (ctx.attr("bins"),))

    def infer_var_type(ctx: InferVarTypeContext) -> None:
        ctx.set_dtype("Out", "int64")


# kthvalue and its gradient.
class Kthvalue(Pick, type="kthvalue"):
    r"""$$Out = X_{(k)}$$ the k-th smallest element along a dim; NaN is the greatest, of equal ones the first comes
    first."""

    k = Attr(1, "Which one, 1 for the smallest.").at_least(1)
    axis = AXIS
    keepdim = KEEP_DIM

    def infer_shape(ctx: InferShapeContext) -> None:
        Pick.infer_shape(ctx)
        dims, axis, k = ctx.dim("X"), ctx.axis("X"), ctx.attr("k")
        size = dims[axis] if axis < len(dims) else 1
        ctx.require(size < 0 or k <= size, f"k is {k} but X has shape {list(dims)}; expected at most {size}")


class KthvalueGrad(PickGrad, of=Kthvalue):
    r"""$$X@GRAD = Out@GRAD$$ at the place Indices, 0 elsewhere."""


# mode and its gradient.
class Mode(Pick, type="mode"):
    r"""$$Out = \operatorname{argmax}_v \#\{i : X_i = v\}$$ the commonest value along a dim, of several the smallest;
    Indices is its last place."""

    axis = AXIS
    keepdim = KEEP_DIM


class ModeGrad(PickGrad, of=Mode):
    r"""$$X@GRAD = Out@GRAD$$ at the place Indices, 0 elsewhere."""


# nanmedian and its gradient.
class Nanmedian(OpDef, type="nanmedian"):
    r"""$$Out = (X_{(\lfloor (n+1)/2 \rfloor)} + X_{(\lfloor n/2 \rfloor + 1)}) / 2$$ of the n elements along some dims
    that are not NaN; NaN where all are. Integers are cut towards zero."""

    X = Input("Tensor of any shape.")
    Out = Output("X's shape without the reduced dims; no LoD.")
    MedianIndex = Output(
        "int64, Out's shape and [2]: the places of both middle elements among those reduced, -1 where all are NaN.",
        intermediate=True,
        extra=True,
    )
    axis = Attr([], "Dims to reduce; none means all.", type=AttrType.INTS)
    keepdim = Attr(True, "Keep reduced dims, with size 1.")

    def infer_shape(ctx: InferShapeContext) -> None:
        dims = reduced_dims(ctx, ctx.dim("X"), ctx.attr("axis"), ctx.attr("keepdim"), False)
        ctx.set_dim("Out", dims)
        ctx.set_dim("MedianIndex", (*dims, 2))

    def infer_var_type(ctx: InferVarTypeContext) -> None:
        ctx.set_dtype("Out", ctx.dtype("X"))
        ctx.set_dtype("MedianIndex", "int64")


class NanmedianGrad(GradOpDef, of=Nanmedian, reads="X MedianIndex Out@GRAD", shape_of="X"):
    r"""$$X@GRAD = Out@GRAD / 2$$ at each of both middle elements, all of it where they are one; 0 elsewhere."""

    expected_kernel_type = dtype_of("Out@GRAD")
