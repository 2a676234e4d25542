"""Cases of the gradient of poisson."""

from __future__ import annotations

import numpy as np
from oprack.testing import OpCase

CASES = [OpCase("poisson_grad", {"Out@GRAD": np.ones((2, 3))}, {}, {"X@GRAD": np.zeros((2, 3))})]
