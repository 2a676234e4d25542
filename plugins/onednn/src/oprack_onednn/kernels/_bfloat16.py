"""bfloat16 between ops, as NumPy computes with it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

import numpy as np
from oprack.kernel import Array
from oprack.tensor import numpy_dtype

from oprack_onednn.ops.precision import rounds_output

_Given = TypeVar("_Given", "Array", "Array | None")


def widened(x: _Given) -> _Given:
    """An array as it is, or float32 numbers where it has bfloat16."""
    return x.astype(np.float32) if x is not None and x.dtype.itemsize == 2 else x


def as_output(y: Array, attrs: Mapping[str, Any]) -> Array:
    """A result, rounded to bfloat16 where the attributes say so."""
    return y.astype(numpy_dtype("bfloat16")) if rounds_output(attrs) else y
