"""Definitions of recurrent nets that begin with a product."""

from __future__ import annotations

from oprack.op import Attr, InferShapeContext, InferVarTypeContext, Input, OpDef, Output, dtype_of

from oprack_fused.ops import _attrs
from oprack_fused.ops._shapes import dense_dims

# Slots and rules of recurrent nets that begin with a product.
ACTIVATIONS = ("sigmoid", "tanh", "relu", "identity")

GATE_ACTIVATION = Attr("sigmoid", "Of the gates.").in_set(ACTIVATIONS)

CELL_ACTIVATION = Attr("tanh", "Of the cell, on its way to Hidden.").in_set(ACTIVATIONS)

CANDIDATE_ACTIVATION = Attr("tanh", "Of the candidate.").in_set(ACTIVATIONS)

IS_REVERSE = Attr(False, "Walk every sequence from its last row.")

USE_SEQ = Attr(True, "Paddle: one sequence after the other, or steps of all; no difference in the result.")

SCALE_DATA = Attr(1.0, "Scale of X in a quantised model.")

SHIFT_DATA = Attr(0.0, "Shift of X in a quantised model.")

XX = Output("What the gates take from the rows.", intermediate=True)


def kept(what: str) -> Output:
    """An output that Paddle's kernels work in, and that is left empty here."""
    return Output(f"Paddle's buffer of {what}; empty.", intermediate=True)


def hidden(
    ctx: InferShapeContext, source: str, weight: str, gates: int, outputs: tuple[str, ...], empty: tuple[str, ...]
) -> int:
    """Part of an infer_shape: outputs [N, D] with the LoD of the rows, and empty buffers.

    Args:
        ctx: The context of the rule.
        source: The slot of the rows.
        weight: The slot of the recurrent weight, [D, gates D].
        gates: Number of gates.
        outputs: Slots of [N, D].
        empty: Slots of buffers.

    Returns:
        D.
    """
    ctx.require_lod(source)
    size = ctx.require_rank(weight, 2)[0]
    ctx.require_dims(weight, (size, -1 if size < 0 else gates * size), why=f"{gates} gates of {size} columns")
    for slot in ("H0", "C0"):
        if slot in ctx.proto.inputs:
            ctx.require_dims(slot, (-1, size), why=f"as many columns as {weight} has rows")
    rows = ctx.dim(source)[0]
    for slot in outputs:
        ctx.set_dim(slot, (rows, size))
        ctx.share_lod(source, slot)
    ctx.set_dim("XX", (rows, -1 if size < 0 else gates * size))
    for slot in empty:
        ctx.set_dim(slot, (0,))
    return size


class AttentionLstm(OpDef, type="attention_lstm"):
    r"""An LSTM that sees, at each of a sequence's steps, all of its rows, weighted by how well they suit its cell:

    $$e_{t,j} = \max(0, x_j a_x + c_{t-1} a_c + b_a),\quad
    \hat x_t = \sum_j \operatorname{softmax}_j(\max(0, s\,e_{t,j} + b_s))\, x_j$$
    $$[f, i, o, c']_t = h_{t-1} W_h + \hat x_t W_x + b,\quad
    c_t = g(f_t) \odot c_{t-1} + g(i_t) \odot a_c(c'_t),\quad h_t = g(o_t) \odot a_s(c_t)$$

    AttentionWeight is $[a_x; a_c]$ and LSTMWeight $[W_h; W_x]$; $s$ and $b_s$, AttentionScalar and its bias, are left
    out when absent, and so is their maximum.
    """

    X = Input("[N, M] with LoD.")
    C0 = Input("[number of sequences, D].")
    H0 = Input("[number of sequences, D]; zero when absent.", dispensable=True)
    AttentionWeight = Input("[M + D, 1].")
    AttentionBias = Input("[1, 1]: $b_a$.", dispensable=True)
    AttentionScalar = Input("[1, 1]: $s$.", dispensable=True)
    AttentionScalarBias = Input("[1, 1]: $b_s$.", dispensable=True)
    LSTMWeight = Input("[D + M, 4 D].")
    LSTMBias = Input("[1, 4 D]: $b$.")
    Hidden = Output("[N, D]: h, with the LoD of X.")
    Cell = Output("[N, D]: c, with the LoD of X.")
    AttentionedX = Output("[N, 1]: $x_j a_x + b_a$.", intermediate=True)
    AttentionFCOut = kept("weights")
    LSTMX = kept("weighted sums")
    LSTMOUT = kept("gates")
    gate_activation = GATE_ACTIVATION
    cell_activation = CELL_ACTIVATION
    candidate_activation = CANDIDATE_ACTIVATION

    def infer_shape(ctx: InferShapeContext) -> None:
        ctx.require_lod("X")
        (rows, columns), size = ctx.require_rank("X", 2), ctx.require_rank("C0", 2)[1]
        both = -1 if -1 in (columns, size) else columns + size
        ctx.require_dims("AttentionWeight", (both, 1), why="the columns of X and of C0")
        ctx.require_dims("LSTMWeight", (both, -1 if size < 0 else 4 * size), why="the columns of C0 and of X")
        ctx.require_dims("LSTMBias", (1, -1 if size < 0 else 4 * size), why="four gates")
        ctx.require_dims("H0", tuple(ctx.dim("C0")), why="the shape of C0")
        for slot in ("AttentionBias", "AttentionScalar", "AttentionScalarBias"):
            ctx.require_dims(slot, (1, 1), why="one number")
        for slot in ("Hidden", "Cell"):
            ctx.set_dim(slot, (rows, size))
            ctx.share_lod("X", slot)
        ctx.set_dim("AttentionedX", (rows, 1))
        for slot in ("AttentionFCOut", "LSTMX", "LSTMOUT"):
            ctx.set_dim(slot, (0,))


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
    XX = XX
    BatchedInput = kept("rows step by step")
    BatchedHidden = kept("h step by step")
    BatchedCell = kept("c step by step")
    ReorderedH0 = kept("H0 in the order of lengths")
    ReorderedC0 = kept("C0 in the order of lengths")
    use_peepholes = Attr(True, "Gates look at the cell.")
    is_reverse = IS_REVERSE
    use_seq = USE_SEQ
    gate_activation = GATE_ACTIVATION
    cell_activation = CELL_ACTIVATION
    candidate_activation = CANDIDATE_ACTIVATION
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


class FusionGru(OpDef, type="fusion_gru"):
    r"""$$Hidden = \operatorname{gru}(X\,WeightX + Bias)$$ mul and gru, whose formula holds."""

    X = Input("[N, M] with LoD.")
    H0 = Input("Initial states [number of sequences, D]; zero when absent.", dispensable=True)
    WeightX = Input("[M, 3 D].")
    WeightH = Input("[D, 3 D], as Weight of gru.")
    Bias = Input("[1, 3 D].", dispensable=True)
    ReorderedH0 = kept("initial states in the order of lengths")
    XX = XX
    BatchedInput = kept("rows step by step")
    BatchedOut = kept("states step by step")
    Hidden = Output("[N, D]: states, with the LoD of X.")
    activation = Attr("tanh", "Of the candidate.").in_set(ACTIVATIONS)
    gate_activation = GATE_ACTIVATION
    is_reverse = IS_REVERSE
    use_seq = USE_SEQ
    origin_mode = Attr(False, "Which of u and 1 - u keeps the old state.")
    use_mkldnn = _attrs.USE_MKLDNN
    mkldnn_data_type = _attrs.MKLDNN_DATA_TYPE
    Scale_data = SCALE_DATA
    Shift_data = SHIFT_DATA
    Scale_weights = _attrs.SCALE_WEIGHTS
    force_fp32_output = _attrs.FORCE_FP32_OUTPUT

    def infer_shape(ctx: InferShapeContext) -> None:
        bias = tuple(ctx.dim("Bias")) if ctx.has_input("Bias") else None
        columns = dense_dims(ctx, tuple(ctx.require_rank("X", 2)), tuple(ctx.dim("WeightX")), bias)[1]
        size = hidden(ctx, "X", "WeightH", 3, ("Hidden",), ("ReorderedH0", "BatchedInput", "BatchedOut"))
        ctx.require(-1 in (columns, size) or columns == 3 * size, f"WeightX has {columns} columns; expected {3 * size}")


_FUSION_LSTM_BUFFERS = ("BatchedInput", "BatchedHidden", "BatchedCell", "ReorderedH0", "ReorderedC0", "CheckedCell")


class FusionLstm(OpDef, type="fusion_lstm"):
    r"""$$Hidden, Cell = \operatorname{lstm}(X\,WeightX)$$ mul and lstm, whose formula holds."""

    X = Input("[N, M] with LoD.")
    WeightX = Input("[M, 4 D].")
    WeightH = Input("[D, 4 D], as Weight of lstm.")
    Bias = Input("[1, 4 D], or with use_peepholes [1, 7 D], as Bias of lstm.")
    H0 = Input("Initial h [number of sequences, D]; zero when absent.", dispensable=True)
    C0 = Input("Initial c [number of sequences, D]; goes with H0.", dispensable=True)
    Hidden = Output("[N, D]: h, with the LoD of X.")
    Cell = Output("[N, D]: c, with the LoD of X.")
    XX = XX
    BatchedInput = kept("rows step by step")
    BatchedHidden = kept("h step by step")
    BatchedCell = kept("c step by step")
    ReorderedH0 = kept("H0 in the order of lengths")
    ReorderedC0 = kept("C0 in the order of lengths")
    CheckedCell = kept("what peepholes see")
    use_peepholes = Attr(True, "Gates look at the cell.")
    is_reverse = IS_REVERSE
    use_seq = USE_SEQ
    gate_activation = GATE_ACTIVATION
    cell_activation = CELL_ACTIVATION
    candidate_activation = CANDIDATE_ACTIVATION
    use_mkldnn = _attrs.USE_MKLDNN
    mkldnn_data_type = _attrs.MKLDNN_DATA_TYPE
    Scale_data = SCALE_DATA
    Shift_data = SHIFT_DATA
    Scale_weights = _attrs.SCALE_WEIGHTS
    force_fp32_output = _attrs.FORCE_FP32_OUTPUT

    def infer_shape(ctx: InferShapeContext) -> None:
        columns = dense_dims(ctx, tuple(ctx.require_rank("X", 2)), tuple(ctx.dim("WeightX")), None)[1]
        size = hidden(ctx, "X", "WeightH", 4, ("Hidden", "Cell"), _FUSION_LSTM_BUFFERS)
        ctx.require(-1 in (columns, size) or columns == 4 * size, f"WeightX has {columns} columns; expected {4 * size}")
        ctx.require_dims("Bias", (1, -1 if size < 0 else (7 if ctx.attr("use_peepholes") else 4) * size))
