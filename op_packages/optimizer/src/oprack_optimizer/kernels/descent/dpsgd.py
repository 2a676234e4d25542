"""Kernel of dpsgd."""

from __future__ import annotations

from oprack.kernel import Array, ArrayModule, KernelContext, kernel
from oprack.types import FLOATS

from oprack_optimizer.kernels._update import BOTH, scalar


@kernel("dpsgd", place=BOTH, dtypes=FLOATS)
def dpsgd(
    Param: Array,
    Grad: Array,
    LearningRate: Array,
    *,
    clip: float,
    batch_size: float,
    sigma: float,
    seed: int,
    ctx: KernelContext,
    xp: ArrayModule,
) -> Array:
    kind = Param.dtype.type
    norm = xp.sqrt((Grad * Grad).sum())
    clipped = Grad / xp.maximum(norm / kind(clip), kind(1))
    noise = xp.asarray(ctx.generator(seed).standard_normal(Param.shape)).astype(Param.dtype) * kind(sigma)
    return Param - scalar(LearningRate, Param.dtype) * (clipped + noise / kind(batch_size))
