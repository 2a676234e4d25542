"""Kernel of fc."""

from __future__ import annotations

from oprack.kernel import Array, KernelContext, kernel

from oprack_fused.kernels._steps import BOTH, DTYPES, Steps


@kernel("fc", place=BOTH, dtypes=DTYPES)
def fc(
    Input: Array,
    W: Array,
    Bias: Array | None = None,
    *,
    in_num_col_dims: int,
    activation_type: str,
    padding_weights: bool,
    ctx: KernelContext,
) -> Array:
    """mul, elementwise_add, activation."""
    weight = W[:-4, :-4] if padding_weights else W
    return Steps(ctx).dense(Input, weight, Bias, activation_type, in_num_col_dims)
