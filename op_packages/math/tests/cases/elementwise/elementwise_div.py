"""Cases of elementwise_div."""

from __future__ import annotations

from oprack.testing import OpCase

from .._data import ints, x, y

CASES = [
    OpCase(
        "elementwise_div",
        {"X": x.swapaxes(1, 2).copy(), "Y": y.reshape(3, 1)},
        {"axis": 2},
        {"Out": x.swapaxes(1, 2) / y},
        ["X", "Y"],
        name="trailing_ones",
    ),
    OpCase(
        "elementwise_div",
        {"X": ints(7, -7, 7, -7), "Y": ints(2, 2, -2, -2)},
        outputs={"Out": ints(3, -3, -3, 3)},
        name="integers",
    ),
]
