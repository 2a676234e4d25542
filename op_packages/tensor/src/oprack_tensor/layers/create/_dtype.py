"""A dtype as the attribute of an op."""

from __future__ import annotations

from oprack.layers import check_dtype
from oprack.types import ALL_DTYPES, dtype_enum


def dtype_attr(dtype: object, layer: str) -> int:
    return int(dtype_enum(check_dtype(dtype, "dtype", layer, ALL_DTYPES)))
