"""Ops that make sparse tensors, and take them apart."""

from __future__ import annotations

from oprack.op import (
    REQUIRED,
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
from oprack.types import AttrType, VarType

from oprack_sparse.ops.unary import GradFromX, Unary


# What changes of the layout share.
class ToSparseGrad(GradOpDef, reads="x"):
    """Gradient of a change of the layout: the same numbers in the layout of x."""


# sparse_coalesce and its gradient.
class SparseCoalesce(Unary, type="sparse_coalesce"):
    r"""$$out.values_j = \sum_{k : i_k = j} x.values_k$$: each element is listed once, sorted by coordinates."""


class SparseCoalesceGrad(GradFromX, of=SparseCoalesce):
    r"""$$x@GRAD.values_k = out@GRAD_{i_k}$$"""


class SparseIndices(OpDef, type="sparse_indices"):
    r"""$$out_{:, k} = i_k$$: the coordinates of the listed elements."""

    x = Input("Sparse tensor in COO.")
    out = Output("Int64 [sparse dims, n].")
    make_grad = empty_grad

    def infer_shape(ctx: InferShapeContext) -> None:
        ctx.set_dim("out", (-1, -1))

    def infer_var_type(ctx: InferVarTypeContext) -> None:
        ctx.set_kind("out", VarType.LOD_TENSOR)
        ctx.set_dtype("out", "int64")


# sparse_sparse_coo_tensor and its gradient.
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


# sparse_to_dense and its gradient.
class SparseToDense(OpDef, type="sparse_to_dense"):
    r"""$$out_i = \sum_{k : i_k = i} x.values_k$$, zero where nothing is listed."""

    x = Input("Sparse tensor.")
    out = Output("Tensor of x's shape.")

    def infer_shape(ctx: InferShapeContext) -> None:
        ctx.set_dim("out", ctx.dim("x"))

    def infer_var_type(ctx: InferVarTypeContext) -> None:
        ctx.set_kind("out", VarType.LOD_TENSOR)
        ctx.set_dtype("out", ctx.dtype("x"))


class SparseToDenseGrad(GradOpDef, of=SparseToDense, reads="x"):
    r"""$$x@GRAD.values_k = out@GRAD_{i_k}$$"""


# sparse_to_sparse_coo and its gradient.
class SparseToSparseCoo(OpDef, type="sparse_to_sparse_coo"):
    r"""$$out = x$$, of which the elements other than zero are listed by their coordinates."""

    x = Input("Tensor, or sparse tensor in CSR.")
    out = Output("Sparse tensor in COO.")
    sparse_dim = Attr(
        REQUIRED, "How many leading dims the coordinates count; the others are dense.", type=AttrType.LONG
    )

    def infer_shape(ctx: InferShapeContext) -> None:
        dims, count = ctx.dim("x"), ctx.attr("sparse_dim")
        unknown = not dims and not ctx.is_runtime
        ctx.require(
            unknown or 0 < count <= len(dims),
            f"sparse_dim is {count}, x has shape {list(dims)}; expected one to its rank",
        )
        ctx.set_dim("out", dims)

    def infer_var_type(ctx: InferVarTypeContext) -> None:
        ctx.set_kind("out", VarType.SPARSE_COO)
        ctx.set_dtype("out", ctx.dtype("x"))


class SparseToSparseCooGrad(ToSparseGrad, of=SparseToSparseCoo):
    r"""$$x@GRAD = out@GRAD$$ in the layout of x; of a tensor, zero where out lists nothing."""


# sparse_to_sparse_csr and its gradient.
class SparseToSparseCsr(OpDef, type="sparse_to_sparse_csr"):
    r"""$$out = x$$, of which the elements other than zero are listed row by row."""

    x = Input("Tensor, or sparse tensor in COO, of two dims, or of three for a batch of matrices.")
    out = Output("Sparse tensor in CSR.")

    def infer_shape(ctx: InferShapeContext) -> None:
        if ctx.is_runtime or ctx.dim("x"):
            ctx.require_rank("x", 2, 3)
        ctx.set_dim("out", ctx.dim("x"))

    def infer_var_type(ctx: InferVarTypeContext) -> None:
        ctx.set_kind("out", VarType.SPARSE_CSR)
        ctx.set_dtype("out", ctx.dtype("x"))


class SparseToSparseCsrGrad(ToSparseGrad, of=SparseToSparseCsr):
    r"""$$x@GRAD = out@GRAD$$ in the layout of x; of a tensor, zero where out lists nothing."""


# sparse_values and its gradient.
class SparseValues(OpDef, type="sparse_values"):
    r"""$$out = x.values$$: a tensor [n, dense dims ...]."""

    x = Input("Sparse tensor.")
    out = Output("Its values. How many dims they have is known when it runs.")

    def infer_shape(ctx: InferShapeContext) -> None:
        """No dims: how many x's values have is known to the kernel alone."""

    def infer_var_type(ctx: InferVarTypeContext) -> None:
        ctx.set_kind("out", VarType.LOD_TENSOR)
        ctx.set_dtype("out", ctx.dtype("x"))


class SparseValuesGrad(GradOpDef, of=SparseValues, reads="x"):
    r"""$$x@GRAD.values = out@GRAD$$"""
