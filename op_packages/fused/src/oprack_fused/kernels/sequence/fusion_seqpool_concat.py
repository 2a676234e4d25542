"""Kernel of fusion_seqpool_concat."""

from __future__ import annotations

from oprack.kernel import Array, KernelContext, kernel
from oprack.tensor import LoDTensor

from oprack_fused.kernels._steps import BOTH, DTYPES
from oprack_fused.kernels.sequence._pool import pooled


@kernel("fusion_seqpool_concat", place=BOTH, dtypes=DTYPES)
def fusion_seqpool_concat(X: list[Array], *, pooltype: str, ctx: KernelContext) -> LoDTensor:
    """sequence_pool, concat."""
    return pooled(X, pooltype, ctx)
