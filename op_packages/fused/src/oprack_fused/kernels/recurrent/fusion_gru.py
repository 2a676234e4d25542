"""Kernel of fusion_gru."""

from __future__ import annotations

from oprack.kernel import Array, ArrayModule, KernelContext, kernel

from oprack_fused.kernels._steps import BOTH, DTYPES, Steps


@kernel("fusion_gru", place=BOTH, dtypes=DTYPES)
def fusion_gru(
    X: Array,
    WeightX: Array,
    WeightH: Array,
    H0: Array | None = None,
    Bias: Array | None = None,
    *,
    activation: str,
    gate_activation: str,
    is_reverse: bool,
    origin_mode: bool,
    ctx: KernelContext,
    xp: ArrayModule,
) -> dict[str, Array]:
    """mul, gru."""
    step = Steps(ctx)
    rows, nothing = step("mul", X=X, Y=WeightX), xp.empty(0, X.dtype)
    attrs = {"activation": activation, "gate_activation": gate_activation}
    attrs |= {"is_reverse": is_reverse, "origin_mode": origin_mode}
    lods = {"Input": ctx.lod("X")}
    states = step("gru", Input=rows, H0=H0, Weight=WeightH, Bias=Bias, lods=lods, want="Hidden", **attrs)
    return {"Hidden": states, "XX": rows, **dict.fromkeys(("ReorderedH0", "BatchedInput", "BatchedOut"), nothing)}
