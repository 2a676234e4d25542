"""Cases of sparse_isnan."""

from __future__ import annotations

import numpy as np
from oprack.testing import OpCase

from .._data import MATRIX, POINTS

CASES = [
    OpCase("sparse_isnan", {"x": y}, {}, {"out": x.with_values(np.isnan(y.values))}, name=type(x).__name__)
    for x in (MATRIX, POINTS)
    for y in [x.with_values(np.where(x.values > 0, x.values, np.float32("nan")))]
]
