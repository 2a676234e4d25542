"""Kernel of gaussian_random."""

from __future__ import annotations

from oprack.kernel import Array, ArrayModule, KernelContext, kernel
from oprack.tensor import numpy_dtype
from oprack.types import FLOATS

from oprack_random.kernels._shape import given_shape


@kernel("gaussian_random", place=("cpu", "cuda"), dtypes=FLOATS)
def gaussian_random(
    ShapeTensor: Array | None = None,
    ShapeTensorList: list[Array] | None = None,
    *,
    shape: list[int],
    mean: float,
    std: float,
    seed: int,
    dtype: int,
    ctx: KernelContext,
    xp: ArrayModule,
) -> Array:
    dims = given_shape("gaussian_random", ShapeTensor, ShapeTensorList, shape)
    return xp.asarray(ctx.generator(seed).normal(mean, std, dims).astype(numpy_dtype(dtype)))
