"""Cases of real; an empty tensor and one without dims among them."""

from __future__ import annotations

import numpy as np
from oprack.testing import OpCase

from ._data import no_z, re, z

CASES = [
    OpCase("real", {"X": z}, outputs={"Out": re}, grads=["X"]),
    OpCase("real", {"X": no_z}, outputs={"Out": no_z.real}, name="empty"),
    OpCase("real", {"X": np.array(2 - 3j)}, outputs={"Out": np.array(2.0)}, name="scalar"),
]
