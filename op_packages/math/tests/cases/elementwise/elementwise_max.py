"""Cases of elementwise_max."""

from __future__ import annotations

from oprack.testing import OpCase

from .._data import floats, nan

CASES = [
    OpCase("elementwise_max", {"X": floats(nan, 1), "Y": floats(1, nan)}, outputs={"Out": floats(1, nan)}, name="nan"),
]
