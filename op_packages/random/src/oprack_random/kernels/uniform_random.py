"""Kernels of uniform_random and uniform_random_batch_size_like."""

from __future__ import annotations

from oprack.errors import InvalidArgumentError
from oprack.kernel import kernel
from oprack.tensor import numpy_dtype
from oprack.types import FLOATS

from oprack_random.kernels._shape import given_shape

_DTYPES = FLOATS | {"bfloat16"}


def _uniform(op, dims, dtype, low, high, diag_num, diag_step, diag_val, generator):
    if low > high:
        raise InvalidArgumentError(f"op {op}: min is {low} and max {high}; expected min <= max")
    wanted = numpy_dtype(dtype)
    values = generator.uniform(low, high, dims).astype(wanted)
    if high > low and wanted.itemsize < 8:
        values[values >= high] = low  # rounding must not reach the upper bound, which is excluded
    last = (diag_num - 1) * (diag_step + 1)
    if last >= values.size:
        raise InvalidArgumentError(
            f"op {op}: diag_num {diag_num} and diag_step {diag_step} lead to element {last} of {values.size}; "
            "expected fewer"
        )
    if diag_num:
        values.reshape(-1)[: last + 1 : diag_step + 1] = diag_val
    return values


@kernel("uniform_random", place=("cpu", "cuda"), dtypes=_DTYPES)
def uniform_random(
    ShapeTensor=None,
    ShapeTensorList=None,
    *,
    shape,
    dtype,
    min,
    max,
    seed,
    diag_num,
    diag_step,
    diag_val,
    ctx,
    xp,
):
    dims = given_shape("uniform_random", ShapeTensor, ShapeTensorList, shape)
    generator = ctx.generator(seed)
    return xp.asarray(_uniform("uniform_random", dims, dtype, min, max, diag_num, diag_step, diag_val, generator))


@kernel("uniform_random_batch_size_like", place=("cpu", "cuda"), dtypes=_DTYPES)
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
    return xp.asarray(_uniform(op, dims, dtype, min, max, diag_num, diag_step, diag_val, ctx.generator(seed)))
