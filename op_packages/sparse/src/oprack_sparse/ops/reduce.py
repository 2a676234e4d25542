"""Ops over elements of a row."""

from __future__ import annotations

from oprack.op import Attr, GradOpDef, InferShapeContext, InferVarTypeContext, Input, OpDef, Output, dtype_of
from oprack.types import AttrType, VarType

from oprack_sparse.ops.unary import GradFromOut, Unary


# sparse_softmax and its gradient.
class SparseSoftmax(Unary, type="sparse_softmax"):
    r"""$$out_i = e^{x_i} / \sum_j e^{x_j}$$ over the listed elements of each row; what is not listed takes no part."""

    axis = Attr(-1, "Dim whose elements compete; of CSR the last one.")

    def infer_shape(ctx: InferShapeContext) -> None:
        ctx.axis("x")
        ctx.set_dim("out", ctx.dim("x"))


class SparseSoftmaxGrad(GradFromOut, of=SparseSoftmax):
    r"""$$x@GRAD_i = out_i (out@GRAD_i - \sum_j out_j\, out@GRAD_j)$$"""


# sparse_sum and its gradient.
class SparseSum(OpDef, type="sparse_sum"):
    r"""$$out_j = \sum_i x_{ij}$$ along an axis, or of all elements; rows that list nothing stay unlisted."""

    x = Input("Sparse tensor.")
    AxisTensor = Input("The axis, instead of the attribute.", dispensable=True)
    AxisTensorList = Input("The axis as a list of one tensor.", dispensable=True, duplicable=True)
    out = Output("Sparse tensor of x's layout. All elements of COO give [1]; of CSR [1, 1], which has no fewer dims.")
    axis = Attr([], "The dim to sum over, -1 of CSR; an empty list for all.", type=AttrType.LONGS)
    dtype = Attr(-1, "dtype of the result as a number of VarType; -1 is x's, for integers and booleans int64.")
    keepdim = Attr(False, "Keep the dim, as 1.")
    expected_kernel_type = dtype_of("x")

    def infer_shape(ctx: InferShapeContext) -> None:
        dims, axis = list(ctx.dim("x")), list(ctx.attr("axis"))
        if ctx.has_input("AxisTensor") or ctx.has_input("AxisTensorList") or (not dims and not ctx.is_runtime):
            return
        ctx.require(len(axis) <= 1, f"axis is {axis}; expected one axis, or none for all")
        least = 2 if ctx.kind("x") is VarType.SPARSE_CSR else 1
        if not axis:
            ctx.set_dim("out", [1] * (len(dims) if ctx.attr("keepdim") else least))
            return
        (along,) = ctx.axes("x")
        keep = ctx.attr("keepdim") or len(dims) <= least
        ctx.set_dim("out", [*dims[:along], *([1] if keep else []), *dims[along + 1 :]])

    def infer_var_type(ctx: InferVarTypeContext) -> None:
        ctx.set_kind("out", ctx.kind("x"))
        dtype, whole = ctx.attr("dtype"), ctx.dtype("x").startswith(("int", "uint", "bool"))
        ctx.set_dtype("out", dtype if dtype >= 0 else "int64" if whole else ctx.dtype("x"))


class SparseSumGrad(GradOpDef, of=SparseSum, reads="x AxisTensor AxisTensorList", grads_of="x"):
    r"""$$x@GRAD_{ij} = out@GRAD_j$$ where x lists an element."""

    expected_kernel_type = dtype_of("x")

    def infer_var_type(ctx: InferVarTypeContext) -> None:
        ctx.set_kind("x@GRAD", ctx.kind("x"))
        ctx.set_dtype("x@GRAD", ctx.dtype("x"))
