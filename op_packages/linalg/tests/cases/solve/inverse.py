"""Cases of inverse."""

from __future__ import annotations

from oprack.testing import OpCase

from .._data import EMPTY, REGULAR, floats

CASES = [
    OpCase("inverse", {"Input": floats([2, 1], [1, 1])}, outputs={"Output": floats([1, -1], [-1, 2])}, name="small"),
    OpCase("inverse", {"Input": REGULAR}, grads=["Input"], name="batch"),
    OpCase("inverse", {"Input": EMPTY}, outputs={"Output": EMPTY}, name="empty"),
]
