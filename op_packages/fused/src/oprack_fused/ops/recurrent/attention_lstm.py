"""attention_lstm: all of the op but its kernels."""

from __future__ import annotations

from oprack.op import InferShapeContext, Input, OpDef, Output

from oprack_fused.ops.recurrent import _family
from oprack_fused.ops.recurrent._family import kept


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
    gate_activation = _family.GATE_ACTIVATION
    cell_activation = _family.CELL_ACTIVATION
    candidate_activation = _family.CANDIDATE_ACTIVATION

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
