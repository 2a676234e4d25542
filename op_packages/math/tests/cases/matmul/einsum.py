"""Cases of einsum."""

from __future__ import annotations

import numpy as np
from oprack.testing import OpCase

from .._data import x, y

CASES = [
    OpCase(
        "einsum",
        {"Operands": [x[0][:, :3]]},
        {"equation": "ii->i"},
        {"Out": np.diag(x[0]).copy(), "InnerCache": [None]},
        ["Operands"],
        name="diagonal",
    ),
    OpCase(
        "einsum",
        {"Operands": [x, x[0], y]},
        {"equation": "bij,kj,k->bi"},
        {"Out": np.einsum("bij,kj,k->bi", x, x[0], y), "InnerCache": [None] * 3},
        ["Operands"],
        name="three",
    ),
    OpCase(
        "einsum",
        {"Operands": [x, y]},
        {"equation": "...ij,i"},
        {"Out": np.einsum("bij,i->bj", x, y), "InnerCache": [None] * 2},
        ["Operands"],
        name="ellipsis",
    ),
]
