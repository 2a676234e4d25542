"""Cases of fusion_squared_mat_sub."""

from __future__ import annotations

from oprack.testing import OpCase

from .._data import draw

X, Y = draw(5, 3), draw(3, 4, seed=1)

CASES = [
    OpCase(
        "fusion_squared_mat_sub",
        {"X": X, "Y": Y},
        {"scalar": 0.5},
        {"SquaredX": X**2, "SquaredY": Y**2, "SquaredXY": (X @ Y) ** 2, "Out": 0.5 * ((X @ Y) ** 2 - X**2 @ Y**2)},
        atol=1e-5,
    ),
]
