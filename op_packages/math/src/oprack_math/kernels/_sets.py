"""Sets of places and dtypes that kernels of several ops are declared for."""

from __future__ import annotations

from oprack.types import COMPLEX, FLOATS, HALF_FLOATS, INTEGERS

BOTH = ("cpu", "cuda")
REAL_FLOATS = FLOATS | HALF_FLOATS
FLOATING = REAL_FLOATS | COMPLEX
REAL = REAL_FLOATS | INTEGERS
NUMBERS = REAL | COMPLEX
