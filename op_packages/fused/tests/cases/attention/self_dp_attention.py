"""Cases of self_dp_attention."""

from __future__ import annotations

from oprack.testing import OpCase

from .._data import attention, draw

X = draw(2, 4, 3, 3, 5)

CASES = [
    OpCase(
        "self_dp_attention", {"X": X}, {"alpha": 0.5, "head_number": 3}, {"Out": attention(X, 0.5)}, name="three_heads"
    ),
]
