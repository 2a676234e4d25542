"""The argument size of recurrent layers."""

from __future__ import annotations

from oprack.errors import InvalidArgumentError
from oprack.layers import check_type


def hidden_size(size: int, gates: int, layer: str) -> int:
    check_type(size, "size", layer, int)
    if size <= 0 or size % gates:
        raise InvalidArgumentError(f"{layer}: size is {size}; expected {gates} times the width of the hidden state")
    return size // gates
