"""Kernel of randint."""

from __future__ import annotations

from oprack.errors import InvalidArgumentError
from oprack.kernel import Array, ArrayModule, KernelContext, kernel
from oprack.tensor import numpy_dtype

from oprack_random.kernels._shape import given_shape


@kernel("randint", place=("cpu", "cuda"), dtypes=("int32", "int64"))
def randint(
    ShapeTensor: Array | None = None,
    ShapeTensorList: list[Array] | None = None,
    *,
    low: int,
    high: int,
    shape: list[int],
    dtype: int,
    seed: int,
    ctx: KernelContext,
    xp: ArrayModule,
) -> Array:
    if low >= high:
        raise InvalidArgumentError(f"op randint: low is {low} and high {high}; expected low < high")
    dims = given_shape("randint", ShapeTensor, ShapeTensorList, shape)
    return xp.asarray(ctx.generator(seed).integers(low, high, dims, dtype="int64").astype(numpy_dtype(dtype)))
