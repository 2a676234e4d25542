"""fused_embedding_fc_lstm: all of the op but its kernels."""

from __future__ import annotations

from oprack.op import Attr, InferShapeContext, InferVarTypeContext, Input, OpDef, Output, dtype_of

from oprack_fused.ops.recurrent import _family
from oprack_fused.ops.recurrent._family import hidden, kept

_BUFFERS = ("BatchedInput", "BatchedHidden", "BatchedCell", "ReorderedH0", "ReorderedC0")


class FusedEmbeddingFcLstm(OpDef, type="fused_embedding_fc_lstm"):
    r"""$$Hidden, Cell = \operatorname{lstm}(Embeddings_{Ids})$$ lookup_table and lstm, whose formula holds.

    A row of Embeddings is that of a table, times the weight of the product that followed, plus the bias of lstm.
    """

    Ids = Input("int64 [N, 1] with LoD.")
    Embeddings = Input("[V, 4 D].")
    WeightH = Input("[D, 4 D], as Weight of lstm.")
    Bias = Input("[1, 4 D], or with use_peepholes [1, 7 D], of which the first 4 D are not read.")
    H0 = Input("Initial h [number of sequences, D]; zero when absent.", dispensable=True)
    C0 = Input("Initial c [number of sequences, D]; goes with H0.", dispensable=True)
    Hidden = Output("[N, D]: h, with the LoD of Ids.")
    Cell = Output("[N, D]: c, with the LoD of Ids.")
    XX = _family.XX
    BatchedInput = kept("rows step by step")
    BatchedHidden = kept("h step by step")
    BatchedCell = kept("c step by step")
    ReorderedH0 = kept("H0 in the order of lengths")
    ReorderedC0 = kept("C0 in the order of lengths")
    use_peepholes = Attr(True, "Gates look at the cell.")
    is_reverse = _family.IS_REVERSE
    use_seq = _family.USE_SEQ
    gate_activation = _family.GATE_ACTIVATION
    cell_activation = _family.CELL_ACTIVATION
    candidate_activation = _family.CANDIDATE_ACTIVATION
    expected_kernel_type = dtype_of("Embeddings")

    def infer_shape(ctx: InferShapeContext) -> None:
        ids, table = tuple(ctx.require_rank("Ids", 2)), ctx.require_rank("Embeddings", 2)
        ctx.require_dims("Ids", (ids[0], 1), why="one id in each row")
        size = hidden(ctx, "Ids", "WeightH", 4, ("Hidden", "Cell"), _BUFFERS)
        ctx.require_dims("Embeddings", (table[0], -1 if size < 0 else 4 * size), why="four gates")
        ctx.require_dims("Bias", (1, -1 if size < 0 else (7 if ctx.attr("use_peepholes") else 4) * size))

    def infer_var_type(ctx: InferVarTypeContext) -> None:
        for slot in ctx.proto.outputs:
            if ctx.has_output(slot):
                ctx.set_dtype(slot, ctx.dtype("Embeddings"))
