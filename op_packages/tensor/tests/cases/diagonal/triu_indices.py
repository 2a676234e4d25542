"""Cases of triu_indices: triangles beyond the matrix, no matrix."""

from __future__ import annotations

import numpy as np
from oprack.testing import OpCase

CASES = [
    OpCase(
        "triu_indices",
        {},
        {"row": rows, "col": columns, "offset": offset, "dtype": 2},
        {"out": np.stack(np.triu_indices(rows, offset, columns)).astype(np.int32)},
        name=f"{rows}x{columns}{offset}",
    )
    for rows, columns, offset in [(3, 4, -1), (4, 3, 0), (3, 4, 7), (3, 4, -7), (0, 0, 0)]
]
