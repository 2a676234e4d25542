"""Cases of reduce_any."""

from __future__ import annotations

from oprack.testing import OpCase

from .._data import ints, x

CASES = [
    OpCase(
        "reduce_any",
        {"X": x > 2, "AxisTensorList": [ints(0), ints(-1)]},
        outputs={"Out": (x > 2).any((0, 2))},
        name="tensors",
    ),
]
