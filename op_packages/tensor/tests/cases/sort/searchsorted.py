"""Cases of searchsorted: rows of their own, equal elements on both sides, NaN."""

from __future__ import annotations

import numpy as np
from oprack.testing import OpCase

rng = np.random.default_rng(6)
ROWS, VALUES = np.sort(rng.integers(0, 9, (2, 3, 7))), rng.integers(-1, 11, (2, 3, 5))


def places(side):
    """By bisection, row by row."""
    pairs = zip(ROWS.reshape(-1, 7), VALUES.reshape(-1, 5), strict=True)
    return np.stack([np.searchsorted(r, v, side) for r, v in pairs]).reshape(VALUES.shape)


CASES = [
    OpCase("searchsorted", {"SortedSequence": ROWS, "Values": VALUES}, {}, {"Out": places("left")}, name="left"),
    OpCase(
        "searchsorted",
        {"SortedSequence": ROWS, "Values": VALUES},
        {"right": True, "out_int32": True},
        {"Out": places("right").astype(np.int32)},
        name="right",
    ),
    OpCase(
        "searchsorted",
        {"SortedSequence": np.array([1.0, 3, 3, 8]), "Values": np.array([[3.0, 9], [np.inf, 0]])},
        {},
        {"Out": np.array([[1, 4], [4, 0]])},
        name="one",
    ),
]
