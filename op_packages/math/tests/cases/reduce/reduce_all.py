"""Cases of reduce_all."""

from __future__ import annotations

from oprack.testing import OpCase

from .._data import ints, x

CASES = [
    OpCase("reduce_all", {"X": x > 1, "AxisTensor": ints(2)}, {"dim": [0]}, {"Out": (x > 1).all(2)}, name="tensor"),
]
