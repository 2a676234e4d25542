"""Kernel of fusion_lstm."""

from __future__ import annotations

from oprack.kernel import Array, ArrayModule, KernelContext, kernel

from oprack_fused.kernels._steps import BOTH, DTYPES, Steps
from oprack_fused.kernels.recurrent._lstm import LstmAttrs, lstm


@kernel("fusion_lstm", place=BOTH, dtypes=DTYPES)
def fusion_lstm(
    X: Array,
    WeightX: Array,
    WeightH: Array,
    Bias: Array,
    H0: Array | None = None,
    C0: Array | None = None,
    *,
    attrs: LstmAttrs,
    ctx: KernelContext,
    xp: ArrayModule,
) -> dict[str, Array]:
    """mul, lstm."""
    rows = Steps(ctx)("mul", X=X, Y=WeightX)
    found = lstm(ctx, rows, WeightH, Bias, H0, C0, attrs, ctx.lod("X"), xp)
    return {**found, "CheckedCell": xp.empty(0, X.dtype)}
