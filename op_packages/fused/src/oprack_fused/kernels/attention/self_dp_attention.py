"""Kernel of self_dp_attention."""

from __future__ import annotations

from oprack.kernel import Array, ArrayModule, KernelContext, kernel

from oprack_fused.kernels._steps import BOTH, DTYPES, Steps
from oprack_fused.kernels.attention._attend import attend


@kernel("self_dp_attention", place=BOTH, dtypes=DTYPES)
def self_dp_attention(X: Array, *, alpha: float, ctx: KernelContext, xp: ArrayModule) -> Array:
    """matmul_v2, scale, softmax, matmul_v2."""
    return xp.ascontiguousarray(attend(Steps(ctx), X, alpha))
