"""Arguments that are lists of variables."""

from __future__ import annotations

from collections.abc import Sequence

from oprack.errors import InvalidArgumentError
from oprack.layers import Variable, check_variable


def variables(value: Sequence[Variable], argument: str, layer: str) -> list[Variable]:
    values = list(value) if isinstance(value, list | tuple) else [value]
    if not values:
        raise InvalidArgumentError(f"{layer}: {argument} is empty; expected one variable or more")
    return [check_variable(v, argument, layer) for v in values]
