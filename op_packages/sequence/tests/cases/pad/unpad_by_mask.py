"""Cases of unpad_by_mask."""

from __future__ import annotations

import numpy as np
from oprack.tensor import LoDTensor
from oprack.testing import OpCase

from ._masks import ALL

CASES = [
    OpCase(
        "unpad_by_mask",
        {"X": p.x, "Mask": p.kept.astype(dtype)},
        {"strict": dtype == "int64"},
        {"Out": p.rows, "Index": LoDTensor(p.index, p.rows.lod)},
        ["X"],
        name=f"{p.name} {dtype}",
    )
    for i, p in enumerate(ALL)
    for dtype in [("bool", "int64", "float32")[i % 3]]
]
_MASK = np.array([[0, 0, 1, 0, 0, 0, 0, 1], [0, 0, 0, 0, 0, 0, 0, 0], [1, 0, 0, 0, 0, 0, 0, 0]], bool)
_PLACES = {1: [1, 2, 3, 6, 7, 16, 17], 3: [0, 1, 2, 3, 4, 5, 6, 7, 16, 17, 18, 19]}
_X = np.arange(24.0).reshape(3, 8)
CASES += [
    OpCase(
        "unpad_by_mask",
        {"X": _X, "Mask": _MASK},
        {"reach": reach, "start_index": start},
        {
            "Out": LoDTensor(_X.reshape(-1)[places], [[0, n, n, len(places)]]),
            "Index": LoDTensor(np.array(places) + 8 * start, [[0, n, n, len(places)]]),
        },
        ["X"],
        name=f"reach {reach}",
    )
    for (reach, places), n, start in zip(_PLACES.items(), (5, 8), (0, 2), strict=True)
]
