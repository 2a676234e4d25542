"""Cases of tril_indices: triangles beyond the matrix, no matrix."""

from __future__ import annotations

import numpy as np
from oprack.testing import OpCase

CASES = [
    OpCase(
        "tril_indices",
        {},
        {"rows": rows, "cols": columns, "offset": offset, "dtype": 3},
        {"out": np.stack(np.tril_indices(rows, offset, columns)).astype(np.int64)},
        name=f"{rows}x{columns}{offset}",
    )
    for rows, columns, offset in [(3, 4, -1), (4, 3, 0), (3, 4, 7), (3, 4, -7), (0, 0, 0)]
]
