"""Kernel of fusion_seqpool_cvm_concat."""

from __future__ import annotations

from oprack.kernel import Array, ArrayModule, KernelContext, kernel
from oprack.tensor import LoDTensor

from oprack_fused.kernels._steps import BOTH, DTYPES
from oprack_fused.kernels.sequence._pool import pooled


@kernel("fusion_seqpool_cvm_concat", place=BOTH, dtypes=DTYPES)
def fusion_seqpool_cvm_concat(X: list[Array], *, pooltype: str, ctx: KernelContext, xp: ArrayModule) -> LoDTensor:
    """sequence_pool, logarithms of the first two columns, concat."""

    def logarithms(x: Array) -> Array:
        shows, clicks = xp.log1p(x[:, :1]), xp.log1p(x[:, 1:2])
        return xp.concatenate([shows, clicks - shows, x[:, 2:]], axis=1)

    return pooled(X, pooltype, ctx, logarithms)
