"""Transforms of memory layouts, deprecated since all arrays are in the layout of the program; removed in the next
release.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from oprack.errors import AlreadyExistsError, UnimplementedError

_LAYOUTS: dict[tuple[str, str], Callable[[Any], Any]] = {
    ("any", "nhwc"): lambda array: array.transpose(0, *range(2, array.ndim), 1) if array.ndim >= 3 else array,
    ("nhwc", "any"): lambda array: (
        array.transpose(0, array.ndim - 1, *range(1, array.ndim - 1)) if array.ndim >= 3 else array
    ),
}


def register_layout_transform(source: str, target: str, function: Callable[[Any], Any]) -> None:
    """Register a function of an array that `transform_layout` calls to turn layout `source` into `target`.

    Raises:
        AlreadyExistsError: The pair is registered already.
    """
    if (source, target) in _LAYOUTS:
        raise AlreadyExistsError(f"a transform from layout {source!r} to {target!r} is registered already")
    _LAYOUTS[source, target] = function


def transform_layout(array: Any, source: str, target: str) -> Any:
    """Transform an array from one layout to another.

    Raises:
        UnimplementedError: No function is registered for the pair.
    """
    if source == target:
        return array
    function = _LAYOUTS.get((source, target))
    if function is None:
        known = ", ".join(f"{a} -> {b}" for a, b in sorted(_LAYOUTS))
        raise UnimplementedError(
            f"no transform from layout {source!r} to {target!r}; known: {known}. Call your function with the array"
        )
    return function(array)
