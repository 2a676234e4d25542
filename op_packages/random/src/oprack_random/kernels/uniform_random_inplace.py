"""Kernels of uniform_random_inplace and of its gradient."""

from __future__ import annotations

from oprack.kernel import Array, ArrayModule, KernelContext, kernel
from oprack.types import FLOATS

from oprack_random.kernels._uniform import uniform
from oprack_random.kernels._zero_grad import zeros


@kernel("uniform_random_inplace", place=("cpu", "cuda"), dtypes=FLOATS)
def uniform_random_inplace(
    X: Array,
    *,
    min: float,
    max: float,
    seed: int,
    diag_num: int,
    diag_step: int,
    diag_val: float,
    ctx: KernelContext,
    xp: ArrayModule,
) -> Array:
    """Evenly distributed numbers."""
    name = "uniform_random_inplace"
    drawn = uniform(name, X.shape, X.dtype, min, max, diag_num, diag_step, diag_val, ctx.generator(seed))
    return xp.asarray(drawn)


uniform_random_inplace_grad = kernel("uniform_random_inplace_grad", place=("cpu", "cuda"), dtypes=FLOATS)(zeros)
