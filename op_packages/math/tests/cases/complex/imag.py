"""Cases of imag; an empty tensor and one without dims among them."""

from __future__ import annotations

import numpy as np
from oprack.testing import OpCase

from ._data import im, no_z, z

CASES = [
    OpCase("imag", {"X": z}, outputs={"Out": im}, grads=["X"]),
    OpCase("imag", {"X": no_z}, outputs={"Out": no_z.imag}, name="empty"),
    OpCase("imag", {"X": np.array(2 - 3j)}, outputs={"Out": np.array(-3.0)}, name="scalar"),
]
