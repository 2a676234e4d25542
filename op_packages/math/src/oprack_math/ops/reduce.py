"""Reductions: sum, mean, product, extrema, all and any."""

from __future__ import annotations

from oprack.op import Attr, GradOpDef, Input, OpDef, Output, dtype_of, empty_grad
from oprack.op.families import USE_MKLDNN
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


class ReduceSum(Reduce, type="reduce_sum"):
    r"""$$Out = \sum_{dim} X$$ bool and int32 give int64, unless out_dtype says otherwise."""

    def infer_var_type(ctx):
        dtype = ctx.dtype("X")
        if ctx.attr("out_dtype") >= 0:
            ctx.set_dtype("Out", ctx.attr("out_dtype"))
        else:
            ctx.set_dtype("Out", "int64" if dtype in ("bool", "int32") else dtype)


class ReduceSumGrad(GradOpDef, of=ReduceSum, shape_of="X"):
    r"""$$X@GRAD = Out@GRAD$$ for every element that was added."""

    make_grad = linear_double_grad("reduce_sum")


class ReduceMean(Reduce, type="reduce_mean"):
    r"""$$Out = \frac1n \sum_{dim} X$$ Integers are cut towards zero; the mean of booleans is whether any is true."""


class ReduceMeanGrad(GradOpDef, of=ReduceMean, shape_of="X"):
    r"""$$X@GRAD = Out@GRAD / n$$"""

    make_grad = linear_double_grad("reduce_mean")


class ReduceProd(Reduce, type="reduce_prod"):
    r"""$$Out = \prod_{dim} X$$"""


class ReduceProdGrad(ReduceGradWithOut, of=ReduceProd):
    r"""$$X@GRAD = Out@GRAD \cdot Out / X$$ so an X of 0 gives NaN or infinity, as in Paddle."""


class ReduceMax(ReduceExtremum, type="reduce_max"):
    r"""$$Out = \max_{dim} X$$"""


class ReduceMaxGrad(ReduceGradWithOut, of=ReduceMax):
    r"""$$X@GRAD = Out@GRAD \cdot [X = Out]$$ every one of several maxima gets all of it."""


class ReduceMin(ReduceExtremum, type="reduce_min"):
    r"""$$Out = \min_{dim} X$$"""


class ReduceMinGrad(ReduceGradWithOut, of=ReduceMin):
    r"""$$X@GRAD = Out@GRAD \cdot [X = Out]$$ every one of several minima gets all of it."""


class _LogicalReduce(OpDef):
    """A reduction of truth values."""

    X = Input("Tensor of any shape; anything but 0 is true.")
    AxisTensor = Input("Dims to reduce, instead of `dim`.", dispensable=True)
    AxisTensorList = Input("Dims to reduce, one per tensor, instead of `dim`.", dispensable=True, duplicable=True)
    Out = Output("bool, X's shape without the reduced dims; no LoD.")
    dim = Attr([0], "Dims to reduce; none means all.", type=AttrType.LONGS)
    keep_dim = KEEP_DIM
    reduce_all = REDUCE_ALL
    in_dtype = IN_DTYPE
    out_dtype = OUT_DTYPE
    use_mkldnn = USE_MKLDNN
    expected_kernel_type = dtype_of("X")
    make_grad = empty_grad

    def infer_shape(ctx):
        axes, keep = ctx.attr("dim"), ctx.attr("keep_dim")
        if ctx.has_input("AxisTensorList"):
            values = [ctx.value("AxisTensorList", i) for i in range(ctx.input_count("AxisTensorList"))]
            axes = [f"axis {i}" if v is None else int(v.reshape(-1)[0]) for i, v in enumerate(values)]
        elif ctx.has_input("AxisTensor"):
            value, dims = ctx.value("AxisTensor"), ctx.dim("AxisTensor")
            count = 1 if dims == () else dims[0]
            axes = ["axis"] * max(count, 1) if value is None else [int(v) for v in value.reshape(-1)]
        ctx.set_dim("Out", reduced_dims(ctx, ctx.dim("X"), axes, keep, ctx.attr("reduce_all")))

    def infer_var_type(ctx):
        ctx.set_dtype("Out", "bool")


class ReduceAll(_LogicalReduce, type="reduce_all"):
    r"""$$Out = \bigwedge_{dim} X$$"""


class ReduceAny(_LogicalReduce, type="reduce_any"):
    r"""$$Out = \bigvee_{dim} X$$"""
