"""Functions by op, as oprack.interpreter.functions makes them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

made: dict[str, Callable[..., Any]] = {}


def function_of(op_type: str) -> Callable[..., Any]:
    """The function of an op."""
    found = made.get(op_type)
    if found is None:
        from oprack.interpreter.functions import function

        found = function(op_type)
    return found
