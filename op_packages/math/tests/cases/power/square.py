"""Cases of square."""

from __future__ import annotations

from oprack.testing import OpCase

from .._data import rows, with_values

CASES = [
    OpCase("square", {"X": rows}, outputs={"Out": with_values(rows.value**2)}, name="rows"),
]
