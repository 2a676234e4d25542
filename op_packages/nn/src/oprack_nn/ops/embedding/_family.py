"""What both generations of lookup_table share: dims and types."""

from __future__ import annotations

from oprack.op import InferShapeContext, InferVarTypeContext
from oprack.types import VarType

IS_SPARSE_DOC = "The gradient of W is SelectedRows: the rows that were read, duplicates and padding_idx included."
PADDING_IDX_DOC = "Rows of Out for this id are zero; -1 for none."


def table_dims(ctx: InferShapeContext) -> tuple[int, ...]:
    """[rows, width] of W."""
    dims = ctx.dim("W")
    ctx.require(len(dims) == 2, f"W has shape {list(dims)}; expected [rows, width]")
    return dims


def infer_rows_type(ctx: InferVarTypeContext) -> None:
    """Out is a tensor, of SelectedRows as well."""
    ctx.set_kind("Out", VarType.LOD_TENSOR)
    ctx.set_dtype("Out", ctx.dtype("W"))


def infer_table_grad_type(ctx: InferVarTypeContext) -> None:
    """W@GRAD is SelectedRows with is_sparse."""
    sparse = ctx.attrs.get("is_sparse", False)
    ctx.set_kind("W@GRAD", VarType.SELECTED_ROWS if sparse else VarType.LOD_TENSOR)
    ctx.set_dtype("W@GRAD", ctx.dtype("Out@GRAD"))
