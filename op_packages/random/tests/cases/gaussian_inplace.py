"""Cases of the gradient of gaussian_inplace."""

from __future__ import annotations

import numpy as np
from oprack.testing import OpCase

CASES = [OpCase("gaussian_inplace_grad", {"out@GRAD": np.ones((2, 3))}, {}, {"x@GRAD": np.zeros((2, 3))})]
