"""Kernel of skip_layernorm."""

from __future__ import annotations

from oprack.kernel import Array, KernelContext, kernel

from oprack_fused.kernels._steps import BOTH, DTYPES, Steps


@kernel("skip_layernorm", place=BOTH, dtypes=DTYPES)
def skip_layernorm(
    X: Array, Y: Array, Scale: Array, Bias: Array, *, epsilon: float, begin_norm_axis: int, ctx: KernelContext
) -> Array:
    """elementwise_add, layer_norm."""
    step = Steps(ctx)
    norm = {"epsilon": epsilon, "begin_norm_axis": begin_norm_axis}
    return step("layer_norm", X=step("elementwise_add", X=X, Y=Y), Scale=Scale, Bias=Bias, want="Y", **norm)
