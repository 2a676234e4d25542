"""Kernel of fused_softplus."""

from __future__ import annotations

from oprack.kernel import Array, ArrayModule, KernelContext, kernel

from oprack_fused.kernels._steps import BOTH, DTYPES, Steps
from oprack_fused.kernels.onednn._post import activated


@kernel("fused_softplus", place=BOTH, dtypes=DTYPES)
def fused_softplus(
    X: Array,
    *,
    beta: float,
    threshold: float,
    fuse_activation: str,
    fuse_alpha: float,
    fuse_beta: float,
    ctx: KernelContext,
    xp: ArrayModule,
) -> Array:
    """softplus, then the activation."""
    step = Steps(ctx)
    return activated(
        step("softplus", X=X, beta=beta, threshold=threshold), fuse_activation, fuse_alpha, fuse_beta, step, xp
    )
