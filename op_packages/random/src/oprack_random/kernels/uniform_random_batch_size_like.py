"""Kernel of uniform_random_batch_size_like."""

from __future__ import annotations

from oprack.kernel import kernel

from oprack_random.kernels._uniform import DTYPES, uniform


@kernel("uniform_random_batch_size_like", place=("cpu", "cuda"), dtypes=DTYPES)
def uniform_random_batch_size_like(
    Input,
    *,
    shape,
    input_dim_idx,
    output_dim_idx,
    min,
    max,
    seed,
    diag_num,
    diag_step,
    diag_val,
    dtype,
    ctx,
    xp,
):
    dims, op = list(shape), "uniform_random_batch_size_like"
    dims[output_dim_idx] = Input.shape[input_dim_idx]
    return xp.asarray(uniform(op, dims, dtype, min, max, diag_num, diag_step, diag_val, ctx.generator(seed)))
