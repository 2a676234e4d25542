"""dtypes of numbers that are not complex."""

from __future__ import annotations

from oprack.types import FLOATS, HALF_FLOATS, INTEGERS

NUMBERS = FLOATS | HALF_FLOATS | INTEGERS
