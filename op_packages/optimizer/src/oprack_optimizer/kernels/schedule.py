"""Kernels of ops that say how a training goes on: learning rates."""

from __future__ import annotations

from oprack.kernel import Array, ArrayModule, kernel
from oprack.types import FLOATS


@kernel("pow2_decay_with_linear_warmup", place=("cpu", "cuda"), dtypes=FLOATS)
def pow2_decay_with_linear_warmup(
    LearningRate: Array,
    Step: Array,
    *,
    warmup_steps: int,
    total_steps: int,
    base_lr: float,
    end_lr: float,
    xp: ArrayModule,
) -> tuple[Array, Array]:
    step = Step + 1
    rising = step / max(warmup_steps, 1) * base_lr
    left = 1 - (step - warmup_steps) / max(total_steps - warmup_steps, 1)
    falling = xp.where(step < total_steps, left * left * (base_lr - end_lr) + end_lr, end_lr)
    return xp.where(step <= warmup_steps, rising, falling).astype(LearningRate.dtype), step
