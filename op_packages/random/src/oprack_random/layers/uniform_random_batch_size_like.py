"""The layer of uniform_random_batch_size_like."""

from __future__ import annotations

from collections.abc import Sequence

from oprack.layers import LayerHelper, Variable, check_dtype, check_variable
from oprack.types import FLOATS, dtype_enum


def uniform_random_batch_size_like(
    input: Variable,
    shape: Sequence[int],
    dtype: object = "float32",
    input_dim_idx: int = 0,
    output_dim_idx: int = 0,
    min: float = -1.0,
    max: float = 1.0,
    seed: int = 0,
    name: str | None = None,
) -> Variable:
    """As uniform_random, but dim `output_dim_idx` is that of dim `input_dim_idx` of `input`.

    Op uniform_random_batch_size_like.
    """
    check_variable(input, "input", "uniform_random_batch_size_like")
    attrs = {
        "shape": list(shape),
        "dtype": int(dtype_enum(check_dtype(dtype, "dtype", "uniform_random_batch_size_like", FLOATS))),
        "input_dim_idx": input_dim_idx,
        "output_dim_idx": output_dim_idx,
        "min": float(min),
        "max": float(max),
        "seed": seed,
    }
    helper = LayerHelper("uniform_random_batch_size_like", name=name)
    return helper.apply("uniform_random_batch_size_like", {"Input": input}, attrs, stop_gradient=True)
