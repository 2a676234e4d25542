"""Cases of elementwise_mod."""

from __future__ import annotations

from oprack.testing import OpCase

from .._data import ints

CASES = [
    OpCase(
        "elementwise_mod",
        {"X": ints(7, -7, 7, -7), "Y": ints(2, 2, -2, -2)},
        outputs={"Out": ints(1, 1, -1, -1)},
        name="integers",
    ),
]
