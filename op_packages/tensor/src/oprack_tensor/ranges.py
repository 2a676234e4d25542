"""Which numbers a dtype holds, and which of them attributes of ops, which are float32, hold as well."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from oprack.types import INTEGERS

RANGES = {name: (int(np.iinfo(name).min), int(np.iinfo(name).max)) for name in INTEGERS}
"""The least and the greatest number of each integer dtype."""
EXACT = 1 << 24
"""Integers up to this are exact in float32."""
DOUBLE = ("float64", "complex128")
"""Dtypes whose numbers an attribute may round."""
_LARGEST = float(np.finfo(np.float32).max)


def is_single(number: float) -> bool:
    """Whether float32 holds a number."""
    return not math.isfinite(number) or (abs(number) <= _LARGEST and float(np.float32(number)) == number)


def rounded_by_attribute(dtype: str | None, number: Any) -> bool:
    """Whether an attribute would round a number that the dtype holds."""
    if isinstance(number, bool) or not isinstance(number, int | float):
        return False
    if dtype in RANGES:
        low, high = RANGES[dtype]
        return isinstance(number, int) and abs(number) > EXACT and low <= number <= high
    return dtype in DOUBLE and not is_single(float(number))
