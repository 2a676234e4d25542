"""Kernel of fused_embedding_fc_lstm."""

from __future__ import annotations

from oprack.kernel import Array, ArrayModule, KernelContext, kernel

from oprack_fused.kernels._steps import BOTH, DTYPES, Steps
from oprack_fused.kernels.recurrent._lstm import LstmAttrs, lstm


@kernel("fused_embedding_fc_lstm", place=BOTH, dtypes=DTYPES)
def fused_embedding_fc_lstm(
    Ids: Array,
    Embeddings: Array,
    WeightH: Array,
    Bias: Array,
    H0: Array | None = None,
    C0: Array | None = None,
    *,
    attrs: LstmAttrs,
    ctx: KernelContext,
    xp: ArrayModule,
) -> dict[str, Array]:
    """lookup_table_v2, lstm; the bias is in the table."""
    rows = Steps(ctx)("lookup_table_v2", W=Embeddings, Ids=Ids.reshape(-1))
    bias = Bias.copy()
    bias[:, : rows.shape[1]] = 0
    return lstm(ctx, rows, WeightH, bias, H0, C0, attrs, ctx.lod("Ids"), xp)
