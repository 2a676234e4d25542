"""Cases of dot."""

from __future__ import annotations

from oprack.testing import OpCase

from .._data import x

CASES = [
    OpCase("dot", {"X": x[0], "Y": x[1]}, outputs={"Out": (x[0] * x[1]).sum(-1)}, grads=["X", "Y"], name="batch"),
]
