"""Cases of skip_layernorm."""

from __future__ import annotations

from oprack.testing import OpCase

from .._data import draw, layer_norm

X, Y, S, B = draw(2, 3, 4), draw(2, 3, 4, seed=1), draw(4, seed=2), draw(4, seed=3)

CASES = [
    OpCase(
        "skip_layernorm",
        {"X": X, "Y": Y, "Scale": S, "Bias": B},
        {"epsilon": 1e-5, "begin_norm_axis": 2},
        {"Out": layer_norm(X + Y, S, B, 1e-5)},
    ),
]
