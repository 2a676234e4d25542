"""Kernel of multihead_matmul."""

from __future__ import annotations

from oprack.kernel import Array, KernelContext, kernel

from oprack_fused.kernels._steps import BOTH, DTYPES, Steps
from oprack_fused.kernels.attention._attend import attend


@kernel("multihead_matmul", place=BOTH, dtypes=DTYPES)
def multihead_matmul(
    Input: Array,
    W: Array,
    Bias: Array,
    BiasQK: Array | None = None,
    *,
    alpha: float,
    head_number: int,
    ctx: KernelContext,
) -> Array:
    """fc, then attention."""
    step, (batch, steps, size) = Steps(ctx), Input.shape
    parts = step.dense(Input, W.reshape(size, 3 * size), Bias, dims=2)
    parts = parts.reshape(batch, steps, 3, head_number, size // head_number)
    return attend(step, parts, alpha, BiasQK).reshape(Input.shape)
