"""Cases of clip."""

from __future__ import annotations

from oprack.testing import OpCase

from .._data import inf, ints, merged, rows

CASES = [
    OpCase("clip", {"X": rows}, {"min": 3.0, "max": 10.0}, {"Out": merged([9, 10], [4, 10])}, name="rows"),
    OpCase("clip", {"X": ints(7, -7, 0)}, {"min": -1.7, "max": inf}, {"Out": ints(7, -1, 0)}, name="integers"),
]
