"""Arguments that are one int or several."""

from __future__ import annotations

from collections.abc import Sequence


def ints(value: Sequence[int] | int) -> list[int]:
    return [value] if isinstance(value, int) else list(value)
