"""Cases of solve: X is given, and Y is computed from the solution."""

from __future__ import annotations

import numpy as np
from oprack.testing import OpCase

from .._data import NONE, REGULAR, draw, f32

A, VECTOR, MANY = REGULAR[0], draw(3), draw(4, 2, 3, 2)


def case(name: str, x: np.ndarray, out: np.ndarray, y: np.ndarray) -> OpCase:
    return OpCase("solve", {"X": x, "Y": y}, outputs={"Out": out}, grads=["X", "Y"], name=name, atol=1e-5)


CASES = [
    case("vector", A, VECTOR, A @ VECTOR),
    case("vectors", REGULAR, draw(2, 3), np.einsum("bij,bj->bi", REGULAR, draw(2, 3))),
    case("columns", REGULAR, MANY[0], REGULAR @ MANY[0]),
    case("more_columns", A, MANY, A @ MANY),
    OpCase(
        "solve",
        {"X": REGULAR, "Y": VECTOR},
        outputs={"Out": np.linalg.solve(REGULAR.astype("f8"), VECTOR.astype("f8")[:, None])[..., 0].astype(f32)},
        grads=["X", "Y"],
        name="one_vector_for_all",
    ),
    OpCase("solve", {"X": NONE, "Y": NONE}, outputs={"Out": NONE}, name="no_matrix"),
]
