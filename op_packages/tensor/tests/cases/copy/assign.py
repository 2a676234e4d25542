"""Cases of assign."""

from __future__ import annotations

import numpy as np
from oprack.tensor import SelectedRows
from oprack.testing import OpCase

ROWS = SelectedRows([4, 1], np.ones((2, 3), np.float32), 6)
CASES = [OpCase("assign", {"X": ROWS}, outputs={"Out": ROWS}, name="rows")]
