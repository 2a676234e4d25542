"""Cases of cholesky_solve: X is computed from the solution."""

from __future__ import annotations

from oprack.testing import OpCase

from .._data import LOWER, POSITIVE, draw

OUT = draw(4, 1, 3, 2)
BOTH = OUT + 0 * POSITIVE[:, :, :1]
UPPER = LOWER.swapaxes(-1, -2).copy()

CASES = [
    OpCase(
        "cholesky_solve",
        {"X": POSITIVE @ OUT, "Y": LOWER},
        outputs={"Out": BOTH},
        grads=["X", "Y"],
        name="lower",
        rtol=1e-4,
        atol=1e-4,
    ),
    OpCase(
        "cholesky_solve",
        {"X": POSITIVE @ OUT, "Y": UPPER},
        {"upper": True},
        {"Out": BOTH},
        ["X", "Y"],
        name="upper",
        rtol=1e-4,
        atol=1e-4,
    ),
    OpCase("cholesky_solve", {"X": OUT, "Y": LOWER[:1]}, grads=["X", "Y"], name="one_matrix_for_many"),
]
