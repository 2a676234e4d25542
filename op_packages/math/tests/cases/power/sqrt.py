"""Cases of sqrt."""

from __future__ import annotations

import numpy as np
from oprack.testing import OpCase

from .._data import rows, with_values

CASES = [
    OpCase("sqrt", {"X": rows}, outputs={"Out": with_values(np.sqrt(rows.value))}, name="rows"),
]
