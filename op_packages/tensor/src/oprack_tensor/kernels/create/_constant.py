"""Attributes that hold a number, as an element of a dtype."""

from __future__ import annotations

from typing import Any

import numpy as np
from oprack.errors import AttributeValueError


def constant(op: str, value: float, str_value: str, dtype: np.dtype[Any]) -> float:
    """The value as a Python number: `str_value` unless it is empty, exactly for integers."""
    if not str_value:
        return value
    try:
        return int(str_value) if dtype.kind in "iu" else complex(str_value) if dtype.kind == "c" else float(str_value)
    except ValueError:
        pass
    try:
        return int(float(str_value)) if dtype.kind in "iu" else float(str_value)
    except (ValueError, OverflowError):
        raise AttributeValueError(
            f"op {op}: attribute str_value is {str_value!r}; "
            f"expected a number of dtype {dtype.name}, or an empty string"
        ) from None


def cast(value: float, dtype: np.dtype[Any]) -> bool | float:
    """A Python number as an element of a dtype, again as a Python number, which every array library fills with."""
    element = np.asarray(value).astype(dtype)
    return element.item() if dtype.kind in "biufc" else float(element)
