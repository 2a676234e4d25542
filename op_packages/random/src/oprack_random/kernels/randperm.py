"""Kernel of randperm."""

from __future__ import annotations

from oprack.kernel import Array, ArrayModule, KernelContext, kernel
from oprack.tensor import numpy_dtype
from oprack.types import FLOATS


@kernel("randperm", place=("cpu", "cuda"), dtypes=FLOATS | {"int32", "int64"})
def randperm(*, n: int, dtype: int, seed: int, ctx: KernelContext, xp: ArrayModule) -> Array:
    return xp.asarray(ctx.generator(seed).permutation(n).astype(numpy_dtype(dtype)))
