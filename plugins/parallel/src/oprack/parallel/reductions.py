"""What an all_reduce may compute."""

from __future__ import annotations

from typing import Any

import numpy as np
from oprack.errors import InvalidArgumentError

REDUCTIONS = {"sum": np.add, "max": np.maximum, "min": np.minimum, "prod": np.multiply}
"""NumPy's function of two arrays in host memory, by the name of the reduction."""


def require_reduction(op: str) -> None:
    """Raise InvalidArgumentError where there is no such reduction."""
    if op not in REDUCTIONS:
        raise InvalidArgumentError(f"all_reduce: op is {op!r}; expected one of {', '.join(REDUCTIONS)}")


def scaled(x: Any, factor: float) -> Any:
    """x, or a new array of its dtype that is multiplied by a factor."""
    return x if factor == 1.0 else x * x.dtype.type(factor)
