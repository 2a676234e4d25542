"""Cases of log."""

from __future__ import annotations

from oprack.testing import OpCase

from .._data import floats, inf, ints, nan

CASES = [
    OpCase("log", {"X": ints(1, 0, -1)}, outputs={"Out": floats(0, -inf, nan)}, name="integers"),
]
