"""c_embedding and its gradient: all of the ops but their kernels."""

from __future__ import annotations

from oprack import op
from oprack.op import Attr, GradOpDef, InferShapeContext, OpDef, dtype_of
from oprack.types import AttrType

from oprack_nn.ops.embedding._family import PADDING_IDX_DOC, infer_rows_type, infer_table_grad_type, table_dims


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
