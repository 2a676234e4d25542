"""Cases of elementwise_pow."""

from __future__ import annotations

from oprack.testing import OpCase

from .._data import ints

CASES = [
    OpCase(
        "elementwise_pow",
        {"X": ints(2, 3, -2, 1), "Y": ints(-1, 0, 3, -5)},
        outputs={"Out": ints(0, 1, -8, 1)},
        name="integers",
    ),
]
