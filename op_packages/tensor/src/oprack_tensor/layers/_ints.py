"""Arguments that are one int or several."""

from __future__ import annotations


def ints(value):
    return [value] if isinstance(value, int) else list(value)
