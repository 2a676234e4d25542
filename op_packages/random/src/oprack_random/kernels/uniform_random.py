"""Kernel of uniform_random."""

from __future__ import annotations

from oprack.kernel import kernel

from oprack_random.kernels._shape import given_shape
from oprack_random.kernels._uniform import DTYPES, uniform


@kernel("uniform_random", place=("cpu", "cuda"), dtypes=DTYPES)
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
    return xp.asarray(uniform("uniform_random", dims, dtype, min, max, diag_num, diag_step, diag_val, generator))
