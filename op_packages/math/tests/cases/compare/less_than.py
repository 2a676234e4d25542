"""Cases of less_than."""

from __future__ import annotations

from oprack.testing import OpCase

from .._data import x, y

CASES = [
    OpCase("less_than", {"X": x, "Y": y}, {"axis": 1}, {"Out": x < y[:, None]}, name="axis"),
]
