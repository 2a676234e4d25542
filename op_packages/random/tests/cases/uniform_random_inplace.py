"""Cases of the gradient of uniform_random_inplace."""

from __future__ import annotations

import numpy as np
from oprack.testing import OpCase

CASES = [OpCase("uniform_random_inplace_grad", {"Out@GRAD": np.ones((2, 3))}, {}, {"X@GRAD": np.zeros((2, 3))})]
