"""Kernel of uniform_random_batch_size_like."""

from __future__ import annotations

from oprack.kernel import Array, ArrayModule, KernelContext, kernel
from oprack.tensor import ShapeOnly

from oprack_random.kernels._uniform import DTYPES, uniform


@kernel("uniform_random_batch_size_like", place=("cpu", "cuda"), dtypes=DTYPES)
def uniform_random_batch_size_like(
    Input: ShapeOnly,
    *,
    shape: list[int],
    input_dim_idx: int,
    output_dim_idx: int,
    min: float,
    max: float,
    seed: int,
    diag_num: int,
    diag_step: int,
    diag_val: float,
    dtype: int,
    ctx: KernelContext,
    xp: ArrayModule,
) -> Array:
    dims, op = list(shape), "uniform_random_batch_size_like"
    dims[output_dim_idx] = Input.shape[input_dim_idx]
    return xp.asarray(uniform(op, dims, dtype, min, max, diag_num, diag_step, diag_val, ctx.generator(seed)))
