"""fused_embedding_seq_pool and its gradient."""

from __future__ import annotations

from oprack.op import Attr, GradOpDef, InferShapeContext, InferVarTypeContext, Input, OpDef, Output, dtype_of
from oprack.types import AttrType, VarType


class FusedEmbeddingSeqPool(OpDef, type="fused_embedding_seq_pool"):
    r"""$$Out_s = \sum_{i \in s} W_{Ids_i}$$ lookup_table and sequence_pool."""

    W = Input("[V, D].")
    Ids = Input("int64 [N, 1] with LoD.")
    Out = Output("[number of sequences, D].")
    combiner = Attr("sum", "How rows of a sequence are joined.").in_set({"sum"})
    padding_idx = Attr(-1, "The id whose row is zeros; -1: none.", type=AttrType.LONG)
    grad_inplace = Attr(False, "Paddle: the gradient takes the place of W.")
    is_sparse = Attr(False, "The gradient of W is SelectedRows.")
    compute_shape = Attr(
        True, "Paddle: shapes are worked out as it runs.", name="@ALL_KERNELS_MUST_COMPUTE_RUNTIME_SHAPE@"
    )
    expected_kernel_type = dtype_of("W")

    def infer_shape(ctx: InferShapeContext) -> None:
        ctx.require_lod("Ids")
        size, ids = ctx.require_rank("W", 2)[1], ctx.require_rank("Ids", 2)
        ctx.require_dims("Ids", (ids[0], 1), why="one id in each row")
        ctx.set_dim("Out", (-1, size))


class FusedEmbeddingSeqPoolGrad(GradOpDef, of=FusedEmbeddingSeqPool, reads="W Ids", shape_of="W", grads_of="W"):
    r"""$$W@GRAD_v = \sum_{Ids_i = v} Out@GRAD_{s(i)}$$ with nothing for the row of `padding_idx`."""

    def infer_var_type(ctx: InferVarTypeContext) -> None:
        ctx.set_kind("W@GRAD", VarType.SELECTED_ROWS if ctx.attr("is_sparse") else VarType.LOD_TENSOR)
        ctx.set_dtype("W@GRAD", ctx.dtype("Out@GRAD"))
