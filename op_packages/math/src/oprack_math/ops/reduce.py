"""Definitions of reductions over dims, positions of extrema, and running sums."""

from __future__ import annotations

import math

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
)
from oprack.op.families import USE_MKLDNN
from oprack.op.sbp import SbpContext, Signature, all_but, factors, letters, reduction
from oprack.types import AttrType

from oprack_math.ops._reduce import (
    IN_DTYPE,
    KEEP_DIM,
    OUT_DTYPE,
    REDUCE_ALL,
    Reduce,
    ReduceExtremum,
    ReduceGradWithOut,
    linear_double_grad,
    reduced_dims,
)


# What arg_max and arg_min share: all but which element they look for.
class ArgExtremum(OpDef):
    """Position of an extremum; of several, the first. NaN counts as the worst."""

    X = Input("Tensor of any shape.")
    Out = Output("Positions, X's shape without the dim `axis`; no LoD.")
    axis = Attr(REQUIRED, "Dim to search.", type=AttrType.LONG, support_tensor=True)
    keepdims = Attr(False, "Keep the dim, with size 1.")
    flatten = Attr(False, "Search all elements as one dim; axis is not read.")
    dtype = Attr(3, "dtype of Out as a number: 3 (or -1) int64, 2 int32.").in_set((-1, 2, 3))
    make_grad = empty_grad

    def sbp(ctx: SbpContext) -> list[Signature]:
        names = letters(len(ctx.dim("X")))
        axis = ctx.attr("axis", -1)
        if ctx.attr("flatten") or not names or not isinstance(axis, int):
            return []
        outs = [None if k == axis % len(names) else n for k, n in enumerate(names)]
        if len(ctx.dim("Out")) != len(names):
            outs.pop(axis % len(names))
        return factors({"X": names}, {"Out": outs}, no=[n for n in names if n not in outs and n is not None])

    def infer_shape(ctx: InferShapeContext) -> None:
        dims, axis = ctx.dim("X"), ctx.attr("axis")
        rank = len(dims)
        if ctx.attr("flatten"):
            ctx.set_dim("Out", (1,) * rank if ctx.attr("keepdims") else ())
            return
        if isinstance(axis, str):
            ctx.set_dim("Out", (-1,) * (rank if ctx.attr("keepdims") else max(rank - 1, 0)))
            return
        limit = max(rank, 1)
        ctx.require(
            -limit <= axis < limit,
            f"axis is {axis} and X has shape {list(dims)}; expected an axis between {-limit} and {limit - 1}",
        )
        if rank:
            axis %= rank
            ctx.require(dims[axis] != 0, f"X has shape {list(dims)}; expected elements along dim {axis} to choose from")
            dims = (*dims[:axis], *((1,) if ctx.attr("keepdims") else ()), *dims[axis + 1 :])
        ctx.set_dim("Out", dims)

    def infer_var_type(ctx: InferVarTypeContext) -> None:
        ctx.set_dtype("Out", "int32" if ctx.attr("dtype") == 2 else "int64")


# Reductions whose dims may be given by tensors.
def reduce_by_tensor(ctx: InferShapeContext, elements: bool = False) -> None:
    """Shape rule of ReduceByTensor; elements: whether the op needs something to choose from."""
    axes, keep = ctx.attr("dim"), ctx.attr("keep_dim")
    if ctx.has_input("AxisTensorList"):
        values = [ctx.scalar("AxisTensorList", i) for i in range(ctx.input_count("AxisTensorList"))]
        axes = [f"axis {i}" if v is None else int(v) for i, v in enumerate(values)]
    elif ctx.has_input("AxisTensor"):
        value, dims = ctx.value("AxisTensor"), ctx.dim("AxisTensor")
        count = 1 if dims == () else dims[0]
        axes = ["axis"] * max(count, 1) if value is None else [int(v) for v in value.reshape(-1)]
    ctx.set_dim("Out", reduced_dims(ctx, ctx.dim("X"), axes, keep, ctx.attr("reduce_all"), elements))


class ReduceByTensor(OpDef):
    """A reduction over dims that an attribute or tensors name."""

    X = Input("Tensor of any shape.")
    AxisTensor = Input("Dims to reduce, instead of `dim`.", dispensable=True)
    AxisTensorList = Input("Dims to reduce, one per tensor, instead of `dim`.", dispensable=True, duplicable=True)
    Out = Output("X's shape without the reduced dims; no LoD.")
    dim = Attr([0], "Dims to reduce; none means all.", type=AttrType.LONGS)
    keep_dim = KEEP_DIM
    reduce_all = REDUCE_ALL
    in_dtype = IN_DTYPE
    out_dtype = OUT_DTYPE
    use_mkldnn = USE_MKLDNN
    expected_kernel_type = dtype_of("X")
    sbp = reduction("other")

    def infer_shape(ctx: InferShapeContext) -> None:
        reduce_by_tensor(ctx)


class ExtremumByTensor(ReduceByTensor):
    """One that chooses an element."""

    def infer_shape(ctx: InferShapeContext) -> None:
        reduce_by_tensor(ctx, elements=True)


class ExtremumGrad(GradOpDef, reads="X AxisTensor AxisTensorList Out Out@GRAD", grads_of="X"):
    """Gradient of an extremum, shared by all elements that reach it."""

    expected_kernel_type = dtype_of("X")


# What cumsum and logcumsumexp share: one result for each element of a dim, or of all elements as one dim.
class Cumulative(OpDef):
    """A sum of what came so far along a dim."""

    X = Input("Tensor of any shape.")
    Out = Output("Shape and LoD of X; with flatten one dim.")
    axis = Attr(-1, "Dim along which to add up.")
    flatten = Attr(False, "Add up over all elements, as one dim.")
    exclusive = Attr(False, "Leave out the element itself, so that the first sum is that of nothing.")
    reverse = Attr(False, "Add up from the end.")

    def infer_shape(ctx: InferShapeContext) -> None:
        dims, axis = ctx.dim("X"), ctx.attr("axis")
        if ctx.attr("flatten"):
            ctx.set_dim("Out", (-1 if -1 in dims else math.prod(dims),))
        else:
            rank = max(len(dims), 1)
            ctx.require(
                isinstance(axis, str) or -rank <= axis < rank,
                f"axis is {axis} and X has shape {list(dims)}; expected an axis between {-rank} and {rank - 1}",
            )
            ctx.set_dim("Out", dims)
        ctx.share_lod("X", "Out")


# What reductions of truth values share.
class LogicalReduce(ReduceByTensor):
    """A reduction of truth values."""

    X = Input("Tensor of any shape; anything but 0 is true.")
    Out = Output("bool, X's shape without the reduced dims; no LoD.")
    make_grad = empty_grad

    def infer_var_type(ctx: InferVarTypeContext) -> None:
        ctx.set_dtype("Out", "bool")


# Ops that go along one dim and give a result for each element of it.
class RunningExtremum(OpDef):
    """The best element so far along a dim, and where it is."""

    x = Input("Tensor of any shape.")
    out = Output("Shape of x; no LoD.")
    indices = Output("Place along the dim of each value of out, the last of equal ones; shape of x.")
    axis = Attr(-1, "Dim to go along; negative counts from the end.")
    dtype = Attr(3, "dtype of indices as a number: 3 int64, 2 int32.").in_set((2, 3))

    def infer_shape(ctx: InferShapeContext) -> None:
        ctx.axis("x")
        ctx.set_dim("out", ctx.dim("x"))
        ctx.set_dim("indices", ctx.dim("x"))

    def infer_var_type(ctx: InferVarTypeContext) -> None:
        ctx.set_dtype("out", ctx.dtype("x"))
        ctx.set_dtype("indices", ctx.attr("dtype"))


class ArgMax(ArgExtremum, type="arg_max"):
    r"""$$Out = \operatorname{argmax}_{axis} X$$ the first of equal ones."""


class ArgMin(ArgExtremum, type="arg_min"):
    r"""$$Out = \operatorname{argmin}_{axis} X$$ the first of equal ones."""


# cummax and its gradient.
class Cummax(RunningExtremum, type="cummax"):
    r"""$$out_i = \max_{j \le i} x_j$$ From the first NaN on it is NaN."""


class CummaxGrad(GradOpDef, of=Cummax, reads="x indices out@GRAD"):
    r"""$$x@GRAD_j = \sum_{i: indices_i = j} out@GRAD_i$$"""

    expected_kernel_type = dtype_of("x")


# cummin and its gradient.
class Cummin(RunningExtremum, type="cummin"):
    r"""$$out_i = \min_{j \le i} x_j$$ From the first NaN on it is NaN."""


class CumminGrad(GradOpDef, of=Cummin, reads="x indices out@GRAD"):
    r"""$$x@GRAD_j = \sum_{i: indices_i = j} out@GRAD_i$$"""

    expected_kernel_type = dtype_of("x")


# cumprod and its gradient.
class Cumprod(OpDef, type="cumprod"):
    r"""$$Out_i = \prod_{j \le i} X_j$$"""

    X = Input("Tensor of any shape.")
    Out = Output("Shape and LoD of X.")
    dim = Attr(REQUIRED, "Dim along which to multiply; negative counts from the end.", type=AttrType.INT)
    inplace = {"X": "Out"}
    sbp = all_but("dim")

    def infer_shape(ctx: InferShapeContext) -> None:
        ctx.axis("X", "dim")
        ctx.set_dim("Out", ctx.dim("X"))
        ctx.share_lod("X", "Out")


class CumprodGrad(GradOpDef, of=Cumprod, reads="X Out"):
    r"""$$X@GRAD_j = \sum_{i \ge j} Out@GRAD_i \prod_{k \le i, k \ne j} X_k$$ also where X holds zeros."""


class Cumsum(Cumulative, type="cumsum"):
    r"""$$Out_i = \sum_{j \le i} X_j$$"""

    axis = Attr(-1, "Dim along which to add up.", support_tensor=True)
    inplace = {"X": "Out"}
    versions = OpVersion("cumsum").checkpoint("Sums over all elements.", ("new_attr", "flatten", False))

    def sbp(ctx: SbpContext) -> list[Signature]:
        return [] if ctx.attr("flatten") else all_but("axis")(ctx)


class CumsumGrad(GradOpDef, of=Cumsum, reads="X", linear=True):
    r"""$$X@GRAD_j = \sum_{i \ge j} Out@GRAD_i$$ the sum in the other direction."""


# logcumsumexp and its gradient.
class Logcumsumexp(Cumulative, type="logcumsumexp"):
    r"""$$Out_i = \ln \sum_{j \le i} e^{X_j}$$ With exclusive, the first result is the lowest number of the dtype."""

    def sbp(ctx: SbpContext) -> list[Signature]:
        return [] if ctx.attr("flatten") else all_but("axis")(ctx)


class LogcumsumexpGrad(GradOpDef, of=Logcumsumexp, reads="X Out"):
    r"""$$X@GRAD_j = \sum_{i \ge j} Out@GRAD_i\, e^{X_j - Out_i}$$"""


# logsumexp and its gradient.
class Logsumexp(OpDef, type="logsumexp"):
    r"""$$Out = \ln \sum_{axis} e^X$$"""

    X = Input("Tensor of any shape.")
    Out = Output("X's shape without the reduced dims; no LoD.")
    axis = Attr([0], "Dims to reduce; none means all.")
    keepdim = KEEP_DIM
    reduce_all = Attr(False, "Reduce all dims, whatever `axis` says.")

    def sbp(ctx: SbpContext) -> list[Signature]:
        names = letters(len(ctx.dim("X")))
        over = ctx.attr("axis", [])
        gone = set(range(len(names))) if ctx.attr("reduce_all") or not over else {a % len(names) for a in over}
        keep = len(ctx.dim("Out")) == len(names)
        outs = [None if k in gone else n for k, n in enumerate(names) if keep or k not in gone]
        return factors({"X": names}, {"Out": outs}, no=[n for k, n in enumerate(names) if k in gone and n is not None])

    def infer_shape(ctx: InferShapeContext) -> None:
        attrs = (ctx.attr(a) for a in ("axis", "keepdim", "reduce_all"))
        ctx.set_dim("Out", reduced_dims(ctx, ctx.dim("X"), *attrs))


class LogsumexpGrad(GradOpDef, of=Logsumexp, reads="X Out"):
    r"""$$X@GRAD = Out@GRAD \cdot e^{X - Out}$$"""


class Mean(OpDef, type="mean"):
    r"""$$Out = \frac1n \sum X$$ over all elements; of no elements, NaN."""

    X = Input("Tensor of any shape.")
    Out = Output("0-D; no LoD.")
    sbp = reduction("mean")

    def infer_shape(ctx: InferShapeContext) -> None:
        ctx.set_dim("Out", ())


class MeanGrad(GradOpDef, of=Mean, shape_of="X", linear=True):
    r"""$$X@GRAD = Out@GRAD / n$$"""


class ReduceAll(LogicalReduce, type="reduce_all"):
    r"""$$Out = \bigwedge_{dim} X$$"""


# reduce_amax and its gradient.
class ReduceAmax(ExtremumByTensor, type="reduce_amax"):
    r"""$$Out = \max_{dim} X$$ as reduce_max, but for the gradient."""


class ReduceAmaxGrad(ExtremumGrad, of=ReduceAmax):
    r"""$$X@GRAD = Out@GRAD \cdot [X = Out] / n$$ in equal shares for all n maxima."""


# reduce_amin and its gradient.
class ReduceAmin(ExtremumByTensor, type="reduce_amin"):
    r"""$$Out = \min_{dim} X$$ as reduce_min, but for the gradient."""


class ReduceAminGrad(ExtremumGrad, of=ReduceAmin):
    r"""$$X@GRAD = Out@GRAD \cdot [X = Out] / n$$ in equal shares for all n minima."""


class ReduceAny(LogicalReduce, type="reduce_any"):
    r"""$$Out = \bigvee_{dim} X$$"""


# reduce_max and its gradient.
class ReduceMax(ReduceExtremum, type="reduce_max"):
    r"""$$Out = \max_{dim} X$$"""


class ReduceMaxGrad(ReduceGradWithOut, of=ReduceMax):
    r"""$$X@GRAD = Out@GRAD \cdot [X = Out]$$ every one of several maxima gets all of it."""


# reduce_mean and its gradient.
class ReduceMean(Reduce, type="reduce_mean"):
    r"""$$Out = \frac1n \sum_{dim} X$$ Integers are cut towards zero; the mean of booleans is whether any is true."""

    sbp = reduction("mean")


class ReduceMeanGrad(GradOpDef, of=ReduceMean, shape_of="X"):
    r"""$$X@GRAD = Out@GRAD / n$$"""

    make_grad = linear_double_grad("reduce_mean")


# reduce_min and its gradient.
class ReduceMin(ReduceExtremum, type="reduce_min"):
    r"""$$Out = \min_{dim} X$$"""


class ReduceMinGrad(ReduceGradWithOut, of=ReduceMin):
    r"""$$X@GRAD = Out@GRAD \cdot [X = Out]$$ every one of several minima gets all of it."""


# reduce_prod and its gradient.
class ReduceProd(Reduce, type="reduce_prod"):
    r"""$$Out = \prod_{dim} X$$"""

    sbp = reduction("other")


class ReduceProdGrad(ReduceGradWithOut, of=ReduceProd):
    r"""$$X@GRAD = Out@GRAD \cdot Out / X$$ so an X of 0 gives NaN or infinity, as in Paddle."""


# reduce_sum and its gradient.
class ReduceSum(Reduce, type="reduce_sum"):
    r"""$$Out = \sum_{dim} X$$ bool and int32 give int64, unless out_dtype says otherwise."""

    sbp = reduction("sum")

    def infer_var_type(ctx: InferVarTypeContext) -> None:
        dtype = ctx.dtype("X")
        if ctx.attr("out_dtype") >= 0:
            ctx.set_dtype("Out", ctx.attr("out_dtype"))
        else:
            ctx.set_dtype("Out", "int64" if dtype in ("bool", "int32") else dtype)


class ReduceSumGrad(GradOpDef, of=ReduceSum, shape_of="X"):
    r"""$$X@GRAD = Out@GRAD$$ for every element that was added."""

    make_grad = linear_double_grad("reduce_sum")


# trace and its gradient.
class Trace(OpDef, type="trace"):
    r"""$$Out = \sum_i Input_{\dots, i, \dots, i + offset, \dots}$$ the sum of a diagonal of dims axis1 and axis2."""

    Input_ = Input("Tensor of rank 2 or more.")
    Out = Output("Input's shape without both dims; no LoD.")
    offset = Attr(0, "Which diagonal: 0 the main one, positive above it.")
    axis1 = Attr(0, "Dim of the rows.")
    axis2 = Attr(1, "Dim of the columns.")
    versions = OpVersion("trace").checkpoint(
        "The dims are named axis1 and axis2.",
        ("new_attr", "axis1", 0),
        ("new_attr", "axis2", 1),
        ("delete_attr", "dim1", None),
        ("delete_attr", "dim2", None),
    )

    def infer_shape(ctx: InferShapeContext) -> None:
        dims = ctx.dim("Input")
        ctx.require(len(dims) >= 2, f"Input has shape {list(dims)}; expected rank 2 or more")
        axes = [ctx.axis("Input", name) for name in ("axis1", "axis2")]
        ctx.require(axes[0] != axes[1], f"axis1 and axis2 both name dim {axes[0]} of Input; expected two dims")
        ctx.set_dim("Out", [d for i, d in enumerate(dims) if i not in axes])


class TraceGrad(GradOpDef, of=Trace, shape_of="Input", linear=True):
    r"""$$Input@GRAD_{\dots, i, \dots, i + offset, \dots} = Out@GRAD$$ and 0 off that diagonal."""
