"""Cases of logical_and."""

from __future__ import annotations

from oprack.testing import OpCase

from .._data import x

CASES = [
    OpCase("logical_and", {"X": x > 1, "Y": x[0] > 1}, outputs={"Out": (x > 1) & (x[0] > 1)}, name="broadcast"),
]
