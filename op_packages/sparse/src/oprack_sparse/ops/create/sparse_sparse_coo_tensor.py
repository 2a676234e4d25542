"""sparse_sparse_coo_tensor and its gradient."""

from __future__ import annotations

from oprack.op import Attr, GradOpDef, InferShapeContext, InferVarTypeContext, Input, OpDef, Output, dtype_of
from oprack.types import AttrType, VarType


class SparseSparseCooTensor(OpDef, type="sparse_sparse_coo_tensor"):
    r"""$$out_{indices_{:, i}} = values_i$$"""

    values = Input("[n, dense dims ...].")
    indices = Input("Integers [sparse dims, n].")
    out = Output("Sparse tensor in COO.")
    shape = Attr([], "Dims of the result; an empty list takes the smallest that hold all indices.", type=AttrType.LONGS)
    expected_kernel_type = dtype_of("values")

    def infer_shape(ctx: InferShapeContext) -> None:
        values, indices, shape = ctx.dim("values"), ctx.dim("indices"), list(ctx.attr("shape"))
        if not values or len(indices) != 2:
            ctx.require(
                not ctx.is_runtime,
                f"indices has shape {list(indices)}, values {list(values)}; expected [sparse dims, n] and [n, ...]",
            )
            return
        if shape:
            ctx.set_dim("out", shape)
        elif indices[0] >= 0:
            ctx.set_dim("out", (*(-1,) * indices[0], *values[1:]))

    def infer_var_type(ctx: InferVarTypeContext) -> None:
        ctx.set_kind("out", VarType.SPARSE_COO)
        ctx.set_dtype("out", ctx.dtype("values"))


class SparseSparseCooTensorGrad(
    GradOpDef, of=SparseSparseCooTensor, reads="indices", shape_of="values", grads_of="values"
):
    r"""$$values@GRAD_i = out@GRAD_{indices_{:, i}}$$"""

    expected_kernel_type = dtype_of("out@GRAD")

    def infer_var_type(ctx: InferVarTypeContext) -> None:
        ctx.set_kind("values@GRAD", VarType.LOD_TENSOR)
        ctx.set_dtype("values@GRAD", ctx.dtype("out@GRAD"))
