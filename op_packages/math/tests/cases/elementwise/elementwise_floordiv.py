"""Cases of elementwise_floordiv."""

from __future__ import annotations

from oprack.testing import OpCase

from .._data import ints

CASES = [
    OpCase(
        "elementwise_floordiv",
        {"X": ints(7, -7, 7, -7), "Y": ints(2, 2, -2, -2)},
        outputs={"Out": ints(3, -4, -4, 3)},
        name="integers",
    ),
]
