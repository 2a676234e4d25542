"""lookup_table_v2: all of the op but its kernels."""

from __future__ import annotations

from oprack import op
from oprack.op import Attr, GradOpDef, InferShapeContext, OpDef, OpVersion, dtype_of
from oprack.op.sbp import SbpContext, Signature, broadcast, factors, letters, partial_sum, split
from oprack.types import AttrType

from oprack_nn.ops.embedding._family import (
    IS_SPARSE_DOC,
    PADDING_IDX_DOC,
    infer_rows_type,
    infer_table_grad_type,
    table_dims,
)


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


class LookupTableV2Grad(GradOpDef, of=LookupTableV2, reads="W Ids Out@GRAD", shape_of="W", grads_of="W", lod=False):
    """W@GRAD sums Out@GRAD by id; dense without the row padding_idx, or SelectedRows with is_sparse."""

    infer_var_type = infer_table_grad_type
