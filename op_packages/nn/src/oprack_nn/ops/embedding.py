"""Definitions of embeddings."""

from __future__ import annotations

from oprack import op
from oprack.op import Attr, GradOpDef, InferShapeContext, InferVarTypeContext, OpDef, OpVersion, dtype_of
from oprack.op.sbp import SbpContext, Signature, broadcast, factors, letters, partial_sum, split
from oprack.types import AttrType, VarType

# What both generations of lookup_table share: dims and types.
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


def _output_dims(ctx: InferShapeContext) -> tuple[int, ...]:
    return *ctx.dim("Ids"), table_dims(ctx)[1]


class CEmbedding(OpDef, type="c_embedding"):
    r"""$$Out_i = W_{Ids_i - start\_index}$$, zero where W has no such row

    The part of a table's rows that one of several machines holds; the sum over all of them is the embedding.
    """

    W = op.Input("[rows, width]: the rows from start_index on of a table.")
    Ids = op.Input("Any shape, int32 or int64.")
    Out = op.Output("Shape of Ids and then width; LoD of Ids.")
    start_index = Attr(0, "Id of the first row of W.", type=AttrType.LONG)
    vocab_size = Attr(-1, "Rows of the whole table, among which ids have to be; -1: any may be.", type=AttrType.LONG)
    padding_idx = Attr(-1, PADDING_IDX_DOC, type=AttrType.LONG, extra=True)
    is_sparse = Attr(False, "The gradient of W is SelectedRows: the rows that were read.", extra=True)
    expected_kernel_type = dtype_of("W")
    infer_var_type = infer_rows_type

    def infer_shape(ctx: InferShapeContext) -> None:
        ctx.set_dim("Out", _output_dims(ctx))
        ctx.share_lod("Ids", "Out")


class CEmbeddingGrad(
    GradOpDef, of=CEmbedding, reads="W Ids", shape_of="W", grads_of="W", dims={"Out@GRAD": _output_dims}
):
    """W@GRAD sums Out@GRAD by id, for the ids that are rows of W; dense, or SelectedRows with is_sparse."""

    infer_var_type = infer_table_grad_type
    expected_kernel_type = dtype_of("Out@GRAD")


class LookupTable(OpDef, type="lookup_table"):
    r"""$$Out_i = W_{Ids_i}$$, zero where Ids is padding_idx."""

    W = op.Input("[rows, width], or SelectedRows that hold some of the rows.")
    Ids = op.Input("[..., 1], int64.")
    Out = op.Output("[..., width], LoD of Ids.")
    is_sparse = Attr(False, IS_SPARSE_DOC)
    is_distributed = Attr(False, "Paddle: the table lives on parameter servers.")
    padding_idx = Attr(-1, PADDING_IDX_DOC, type=AttrType.LONG)
    remote_prefetch = Attr(False, "Paddle: fetch rows from parameter servers.")
    entry_config = Attr("", "Paddle: admission of sparse features.")
    is_test = Attr(False, "Ids that a SelectedRows table lacks give zero rows instead of an error.")
    entry = Attr("none", "Paddle: admission of sparse features.")
    table_class = Attr("none", "Paddle: kind of the table on parameter servers.")
    table_names = Attr([], "Paddle: tables on parameter servers.", type=AttrType.STRINGS)
    trainer_id = Attr(0, "Paddle: number of this trainer.")
    slot = Attr(0, "Paddle: slot of the feature.", extra=True)
    grad_inplace = Attr(False, "Paddle: write the gradient into its variable.")
    epmap = Attr([], "Paddle: parameter servers.", type=AttrType.STRINGS)
    height_sections = Attr([], "Paddle: rows per parameter server.", type=AttrType.LONGS)
    expected_kernel_type = dtype_of("W")
    infer_var_type = infer_rows_type
    versions = OpVersion("lookup_table").checkpoint("New attribute entry_config.", ("new_attr", "entry_config", ""))

    def sbp(ctx: SbpContext) -> list[Signature]:
        ids = letters(len(ctx.dim("Ids")) - 1)
        return factors({"Ids": [*ids, None], "W": [None, "width"]}, {"Out": [*ids, "width"]})

    def infer_shape(ctx: InferShapeContext) -> None:
        ids, table = ctx.dim("Ids"), table_dims(ctx)
        ctx.require(
            len(ids) > 0 and ids[-1] in (1, -1),
            f"Ids has shape {list(ids)}; expected a last dim of 1 (lookup_table_v2 takes Ids without it)",
        )
        ctx.set_dim("Out", (*ids[:-1], table[1]))
        ctx.share_lod("Ids", "Out")


class LookupTableGrad(GradOpDef, of=LookupTable, reads="Ids", shape_of="W", grads_of="W", lod=False, linear=True):
    """W@GRAD sums Out@GRAD by id; dense without the row padding_idx, or SelectedRows with is_sparse."""

    infer_var_type = infer_table_grad_type


class LookupTableV2(OpDef, type="lookup_table_v2"):
    r"""$$Out_i = W_{Ids_i}$$, zero where Ids is padding_idx."""

    Ids = op.Input("Any shape, int32 or int64.")
    W = op.Input("[rows, width], or SelectedRows that hold some of the rows.")
    Out = op.Output("Shape of Ids and then width; LoD of Ids.")
    padding_idx = Attr(-1, PADDING_IDX_DOC, type=AttrType.LONG)
    is_sparse = Attr(False, IS_SPARSE_DOC, extra=True)
    is_distributed = Attr(False, "Paddle: the table lives on parameter servers.", extra=True)
    remote_prefetch = Attr(False, "Paddle: fetch rows from parameter servers.", extra=True)
    slot = Attr(0, "Paddle: slot of the feature.", extra=True)
    table_names = Attr([], "Paddle: tables on parameter servers.", type=AttrType.STRINGS, extra=True)
    trainer_id = Attr(0, "Paddle: number of this trainer.", extra=True)
    epmap = Attr([], "Paddle: parameter servers.", type=AttrType.STRINGS, extra=True)
    height_sections = Attr([], "Paddle: rows per parameter server.", type=AttrType.LONGS, extra=True)
    expected_kernel_type = dtype_of("W")
    infer_var_type = infer_rows_type
    versions = OpVersion("lookup_table_v2").checkpoint(
        "Ids may be int32.", ("bugfix", "Ids may be int32 as well as int64", None)
    )

    def sbp(ctx: SbpContext) -> list[Signature]:
        ids = letters(len(ctx.dim("Ids")))
        found = factors({"Ids": ids, "W": [None, "width"]}, {"Out": [*ids, "width"]})
        # Each rank looks up the ids whose rows it has; other rows of Out are 0.
        return [*found, Signature({"Ids": broadcast, "W": split(0)}, {"Out": partial_sum}, via="c_embedding")]

    def infer_shape(ctx: InferShapeContext) -> None:
        ctx.set_dim("Out", (*ctx.dim("Ids"), table_dims(ctx)[1]))
        ctx.share_lod("Ids", "Out")


class LookupTableV2Grad(
    GradOpDef, of=LookupTableV2, reads="W Ids Out@GRAD", shape_of="W", grads_of="W", lod=False, linear=True
):
    """W@GRAD sums Out@GRAD by id; dense without the row padding_idx, or SelectedRows with is_sparse."""

    infer_var_type = infer_table_grad_type
