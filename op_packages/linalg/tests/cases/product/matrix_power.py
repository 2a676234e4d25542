"""Cases of matrix_power."""

from __future__ import annotations

import numpy as np
from oprack.testing import OpCase

from .._data import EMPTY, REGULAR, f32


def case(n: int, out: np.ndarray) -> OpCase:
    name = f"power_{n}".replace("-", "minus_")
    return OpCase("matrix_power", {"X": REGULAR}, {"n": n}, {"Out": out}, ["X"], name=name, rtol=1e-4)


INVERSE = np.linalg.inv(REGULAR.astype("f8"))

CASES = [
    case(0, np.broadcast_to(np.eye(3, dtype=f32), REGULAR.shape).copy()),
    case(1, REGULAR),
    case(2, REGULAR @ REGULAR),
    case(5, REGULAR @ REGULAR @ REGULAR @ REGULAR @ REGULAR),
    case(-1, INVERSE.astype(f32)),
    case(-3, (INVERSE @ INVERSE @ INVERSE).astype(f32)),
    OpCase("matrix_power", {"X": EMPTY}, {"n": 2}, {"Out": EMPTY}, name="empty"),
]
