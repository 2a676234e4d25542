"""Cases of erf."""

from __future__ import annotations

from oprack.testing import OpCase

from .._data import floats, inf, nan

CASES = [
    OpCase(
        "erf",
        {"X": floats(0, 0.3, -1, 5, inf, nan)},
        outputs={"Out": floats(0, 0.328626759, -0.842700793, 1, 1, nan)},
        name="edges",
    ),
]
