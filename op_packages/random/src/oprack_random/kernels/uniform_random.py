"""Kernel of uniform_random."""

from __future__ import annotations

from oprack.kernel import Array, ArrayModule, KernelContext, kernel

from oprack_random.kernels._shape import given_shape
from oprack_random.kernels._uniform import DTYPES, uniform


@kernel("uniform_random", place=("cpu", "cuda"), dtypes=DTYPES)
def uniform_random(
    ShapeTensor: Array | None = None,
    ShapeTensorList: list[Array] | None = None,
    *,
    shape: list[int],
    dtype: int,
    min: float,
    max: float,
    seed: int,
    diag_num: int,
    diag_step: int,
    diag_val: float,
    ctx: KernelContext,
    xp: ArrayModule,
) -> Array:
    dims = given_shape("uniform_random", ShapeTensor, ShapeTensorList, shape)
    generator = ctx.generator(seed)
    return xp.asarray(uniform("uniform_random", dims, dtype, min, max, diag_num, diag_step, diag_val, generator))
