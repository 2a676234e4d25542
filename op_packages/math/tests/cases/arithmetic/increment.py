"""Cases of increment."""

from __future__ import annotations

from oprack.testing import OpCase

from .._data import ints

CASES = [
    OpCase("increment", {"X": ints(3)}, {"step": 2.7}, {"Out": ints(5)}, name="integers"),
]
