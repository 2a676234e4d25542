"""Arguments that are conditions."""

from __future__ import annotations

from oprack.errors import InvalidArgumentError
from oprack.layers import Variable, check_variable


def check_condition(value: Variable, argument: str, layer: str) -> Variable:
    """A bool Variable of one element. Raises InvalidArgumentError."""
    check_variable(value, argument, layer, {"bool"})
    if any(d not in (1, -1) for d in value.shape):
        raise InvalidArgumentError(
            f"{layer}: {argument} (variable {value.name!r}) has shape {list(value.shape)}; expected one element, so "
            "reduce it, for example with layers.reduce_all"
        )
    return value
