"""Kernel of truncated_gaussian_random."""

from __future__ import annotations

import numpy as np
from oprack.kernel import Array, ArrayModule, KernelContext, kernel
from oprack.tensor import numpy_dtype
from oprack.types import FLOATS

_CUT = 2.0  # in standard deviations


@kernel("truncated_gaussian_random", place=("cpu", "cuda"), dtypes=FLOATS)
def truncated_gaussian_random(
    *, shape: list[int], mean: float, std: float, seed: int, dtype: int, ctx: KernelContext, xp: ArrayModule
) -> Array:
    generator = ctx.generator(seed)
    values = generator.standard_normal(tuple(shape))
    outside = np.abs(values) > _CUT
    while outside.any():  # one value in 22 is drawn again
        values[outside] = generator.standard_normal(int(outside.sum()))
        outside = np.abs(values) > _CUT
    return xp.asarray((values * std + mean).astype(numpy_dtype(dtype)))
