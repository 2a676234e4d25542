"""Cases of clip_by_norm."""

from __future__ import annotations

from oprack.testing import OpCase

from .._data import merged, no_rows, rows

CASES = [
    OpCase("clip_by_norm", {"X": rows}, {"max_norm": 1e3}, {"Out": merged([9, 16], [4, 16])}, name="rows"),
    OpCase("clip_by_norm", {"X": no_rows}, {"max_norm": 1.0}, {"Out": no_rows}, name="no_rows"),
]
