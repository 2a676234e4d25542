"""lookup_table: all of the op but its kernels."""

from __future__ import annotations

from oprack import op
from oprack.op import Attr, GradOpDef, InferShapeContext, OpDef, OpVersion, dtype_of
from oprack.op.sbp import SbpContext, Signature, factors, letters
from oprack.types import AttrType

from oprack_nn.ops.embedding._family import (
    IS_SPARSE_DOC,
    PADDING_IDX_DOC,
    infer_rows_type,
    infer_table_grad_type,
    table_dims,
)


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


class LookupTableGrad(GradOpDef, of=LookupTable, reads="Ids", shape_of="W", grads_of="W", lod=False):
    """W@GRAD sums Out@GRAD by id; dense without the row padding_idx, or SelectedRows with is_sparse."""

    infer_var_type = infer_table_grad_type
