"""Cases of fused_softmax_mask."""

from __future__ import annotations

from oprack.testing import OpCase

from .._data import draw, softmax

X, MASK = draw(2, 3, 4, 5), -10 * (draw(2, 1, 4, 5, seed=1) > 0)

CASES = [
    OpCase(
        "fused_softmax_mask",
        {"X": X, "Mask": MASK.astype("f4")},
        outputs={"Out": softmax(X + MASK).astype("f4")},
        grads=["X"],
    ),
]
