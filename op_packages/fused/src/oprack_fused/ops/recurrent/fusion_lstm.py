"""fusion_lstm: all of the op but its kernels."""

from __future__ import annotations

from oprack.op import Attr, InferShapeContext, Input, OpDef, Output

from oprack_fused.ops import _attrs
from oprack_fused.ops._shapes import dense_dims
from oprack_fused.ops.recurrent import _family
from oprack_fused.ops.recurrent._family import hidden, kept

_BUFFERS = ("BatchedInput", "BatchedHidden", "BatchedCell", "ReorderedH0", "ReorderedC0", "CheckedCell")


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
    XX = _family.XX
    BatchedInput = kept("rows step by step")
    BatchedHidden = kept("h step by step")
    BatchedCell = kept("c step by step")
    ReorderedH0 = kept("H0 in the order of lengths")
    ReorderedC0 = kept("C0 in the order of lengths")
    CheckedCell = kept("what peepholes see")
    use_peepholes = Attr(True, "Gates look at the cell.")
    is_reverse = _family.IS_REVERSE
    use_seq = _family.USE_SEQ
    gate_activation = _family.GATE_ACTIVATION
    cell_activation = _family.CELL_ACTIVATION
    candidate_activation = _family.CANDIDATE_ACTIVATION
    use_mkldnn = _attrs.USE_MKLDNN
    mkldnn_data_type = _attrs.MKLDNN_DATA_TYPE
    Scale_data = _family.SCALE_DATA
    Shift_data = _family.SHIFT_DATA
    Scale_weights = _attrs.SCALE_WEIGHTS
    force_fp32_output = _attrs.FORCE_FP32_OUTPUT

    def infer_shape(ctx: InferShapeContext) -> None:
        columns = dense_dims(ctx, tuple(ctx.require_rank("X", 2)), tuple(ctx.dim("WeightX")), None)[1]
        size = hidden(ctx, "X", "WeightH", 4, ("Hidden", "Cell"), _BUFFERS)
        ctx.require(-1 in (columns, size) or columns == 4 * size, f"WeightX has {columns} columns; expected {4 * size}")
        ctx.require_dims("Bias", (1, -1 if size < 0 else (7 if ctx.attr("use_peepholes") else 4) * size))
