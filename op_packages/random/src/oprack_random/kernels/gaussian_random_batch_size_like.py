"""Kernel of gaussian_random_batch_size_like."""

from __future__ import annotations

from oprack.kernel import Array, ArrayModule, KernelContext, kernel
from oprack.tensor import ShapeOnly, numpy_dtype
from oprack.types import FLOATS


@kernel("gaussian_random_batch_size_like", place=("cpu", "cuda"), dtypes=FLOATS)
def gaussian_random_batch_size_like(
    Input: ShapeOnly,
    *,
    shape: list[int],
    input_dim_idx: int,
    output_dim_idx: int,
    mean: float,
    std: float,
    seed: int,
    dtype: int,
    ctx: KernelContext,
    xp: ArrayModule,
) -> Array:
    """Normal numbers, as many rows as Input has."""
    dims = list(shape)
    dims[output_dim_idx] = Input.shape[input_dim_idx]
    return xp.asarray(ctx.generator(seed).normal(mean, std, dims).astype(numpy_dtype(dtype)))
