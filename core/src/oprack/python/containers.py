"""Lists and tuples made anew with other members."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any


def with_members(value: list[Any] | tuple[Any, ...], members: Iterable[Any]) -> Any:
    """A list or tuple of the class of `value`; a named tuple, as numpy.linalg returns, takes its fields one by one."""
    return type(value)(*members) if hasattr(value, "_fields") else type(value)(members)
