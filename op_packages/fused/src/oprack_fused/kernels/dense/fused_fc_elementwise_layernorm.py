"""Kernel of fused_fc_elementwise_layernorm."""

from __future__ import annotations

from oprack.kernel import Array, KernelContext, kernel

from oprack_fused.kernels._steps import BOTH, DTYPES, Steps


@kernel("fused_fc_elementwise_layernorm", place=BOTH, dtypes=DTYPES)
def fused_fc_elementwise_layernorm(
    X: Array,
    W: Array,
    Y: Array,
    Bias0: Array | None = None,
    Scale: Array | None = None,
    Bias1: Array | None = None,
    *,
    x_num_col_dims: int,
    activation_type: str,
    epsilon: float,
    begin_norm_axis: int,
    ctx: KernelContext,
) -> tuple[Array, Array, Array]:
    """fc, elementwise_add, layer_norm."""
    step = Steps(ctx)
    total = step("elementwise_add", X=step.dense(X, W, Bias0, activation_type, x_num_col_dims), Y=Y)
    norm = {"epsilon": epsilon, "begin_norm_axis": begin_norm_axis}
    found = step.all("layer_norm", X=total, Scale=Scale, Bias=Bias1, **norm)
    return found["Y"], found["Mean"].reshape(-1), found["Variance"].reshape(-1)
