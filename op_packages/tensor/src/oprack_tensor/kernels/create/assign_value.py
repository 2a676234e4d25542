"""Kernel of assign_value."""

from __future__ import annotations

import numpy as np
from oprack.device import constant
from oprack.errors import AttributeValueError
from oprack.kernel import Array, ArrayModule, kernel
from oprack.tensor import numpy_dtype
from oprack.types import dtype_name

from oprack_tensor.dims import product

_LISTS = {"bool": "bool_values", "float32": "fp32_values", "float64": "fp64_values", "int64": "int64_values"}


@kernel("assign_value", place=("cpu", "cuda"))
def assign_value(
    *,
    shape: list[int],
    dtype: int,
    bool_values: list[int],
    fp32_values: list[float],
    fp64_values: list[float],
    int32_values: list[int],
    int64_values: list[int],
    xp: ArrayModule,
) -> Array:
    lists = {
        "bool_values": bool_values,
        "fp32_values": fp32_values,
        "fp64_values": fp64_values,
        "int32_values": int32_values,
        "int64_values": int64_values,
    }
    name = _LISTS.get(dtype_name(dtype), "int32_values")
    values = lists[name] or next((v for v in lists.values() if v), [])
    size = product(shape)
    if len(values) < size:
        raise AttributeValueError(
            f"op assign_value: attribute {name} has {len(values)} values but shape {list(shape)} has {size} "
            "elements; expected one value per element"
        )
    return constant(np.array(values[:size], numpy_dtype(dtype)), xp).reshape(shape).copy()
