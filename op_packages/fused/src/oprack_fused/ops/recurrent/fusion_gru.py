"""fusion_gru: all of the op but its kernels."""

from __future__ import annotations

from oprack.op import Attr, InferShapeContext, Input, OpDef, Output

from oprack_fused.ops import _attrs
from oprack_fused.ops._shapes import dense_dims
from oprack_fused.ops.recurrent import _family
from oprack_fused.ops.recurrent._family import ACTIVATIONS, hidden, kept


class FusionGru(OpDef, type="fusion_gru"):
    r"""$$Hidden = \operatorname{gru}(X\,WeightX + Bias)$$ mul and gru, whose formula holds."""

    X = Input("[N, M] with LoD.")
    H0 = Input("Initial states [number of sequences, D]; zero when absent.", dispensable=True)
    WeightX = Input("[M, 3 D].")
    WeightH = Input("[D, 3 D], as Weight of gru.")
    Bias = Input("[1, 3 D].", dispensable=True)
    ReorderedH0 = kept("initial states in the order of lengths")
    XX = _family.XX
    BatchedInput = kept("rows step by step")
    BatchedOut = kept("states step by step")
    Hidden = Output("[N, D]: states, with the LoD of X.")
    activation = Attr("tanh", "Of the candidate.").in_set(ACTIVATIONS)
    gate_activation = _family.GATE_ACTIVATION
    is_reverse = _family.IS_REVERSE
    use_seq = _family.USE_SEQ
    origin_mode = Attr(False, "Which of u and 1 - u keeps the old state.")
    use_mkldnn = _attrs.USE_MKLDNN
    mkldnn_data_type = _attrs.MKLDNN_DATA_TYPE
    Scale_data = _family.SCALE_DATA
    Shift_data = _family.SHIFT_DATA
    Scale_weights = _attrs.SCALE_WEIGHTS
    force_fp32_output = _attrs.FORCE_FP32_OUTPUT

    def infer_shape(ctx: InferShapeContext) -> None:
        bias = tuple(ctx.dim("Bias")) if ctx.has_input("Bias") else None
        columns = dense_dims(ctx, tuple(ctx.require_rank("X", 2)), tuple(ctx.dim("WeightX")), bias)[1]
        size = hidden(ctx, "X", "WeightH", 3, ("Hidden",), ("ReorderedH0", "BatchedInput", "BatchedOut"))
        ctx.require(-1 in (columns, size) or columns == 3 * size, f"WeightX has {columns} columns; expected {3 * size}")
