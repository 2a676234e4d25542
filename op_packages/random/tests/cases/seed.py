"""Cases of seed: a number that is given."""

from __future__ import annotations

import numpy as np
from oprack.testing import OpCase

CASES = [OpCase("seed", {}, {"seed": 7}, {"Out": np.array([7], np.int32)})]
