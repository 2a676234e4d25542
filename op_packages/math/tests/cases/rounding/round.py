"""Cases of round."""

from __future__ import annotations

from oprack.testing import OpCase

from .._data import floats

CASES = [
    OpCase(
        "round",
        {"X": floats(0.5, 2.5, -2.5, 0.49999997, -0.2)},
        outputs={"Out": floats(1, 3, -3, 0, 0)},
        name="halves",
    ),
]
