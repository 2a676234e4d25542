"""Reductions whose dims may be given by tensors."""

from __future__ import annotations

from oprack.op import Attr, GradOpDef, InferShapeContext, Input, OpDef, Output, dtype_of
from oprack.op.families import USE_MKLDNN
from oprack.op.sbp import reduction
from oprack.types import AttrType

from oprack_math.ops._reduce import IN_DTYPE, KEEP_DIM, OUT_DTYPE, REDUCE_ALL, reduced_dims


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
