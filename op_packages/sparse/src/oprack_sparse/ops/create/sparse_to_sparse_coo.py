"""sparse_to_sparse_coo and its gradient."""

from __future__ import annotations

from oprack.op import REQUIRED, Attr, InferShapeContext, InferVarTypeContext, Input, OpDef, Output
from oprack.types import AttrType, VarType

from oprack_sparse.ops.create._convert import ToSparseGrad


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
