"""What shifts share."""

from __future__ import annotations

from typing import Any

from oprack.kernel import Array


def bits_of(x: Array) -> Any:
    """The number of bits of a dtype, as a number of it."""
    return x.dtype.type(8 * x.dtype.itemsize)
