"""sparse_to_sparse_csr and its gradient."""

from __future__ import annotations

from oprack.op import InferShapeContext, InferVarTypeContext, Input, OpDef, Output
from oprack.types import VarType

from oprack_sparse.ops.create._convert import ToSparseGrad


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
