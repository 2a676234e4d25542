"""Cases of fused_fc_elementwise_layernorm."""

from __future__ import annotations

import numpy as np
from oprack.testing import OpCase

from .._data import draw, layer_norm

X, W, Y, B, S = draw(2, 3, 4), draw(4, 5, seed=1), draw(2, 3, 5, seed=2), draw(5, seed=3), draw(5, seed=4)
TOTAL = np.maximum(X @ W + B, 0) + Y

CASES = [
    OpCase(
        "fused_fc_elementwise_layernorm",
        {"X": X, "W": W, "Y": Y, "Bias0": B, "Scale": S, "Bias1": B},
        {"x_num_col_dims": 2, "begin_norm_axis": 2, "activation_type": "relu"},
        {
            "Out": layer_norm(TOTAL, S, B, 1e-5),
            "Mean": TOTAL.mean(-1).reshape(6),
            "Variance": TOTAL.var(-1).reshape(6),
        },
        atol=1e-5,
        name="relu",
    ),
    OpCase(
        "fused_fc_elementwise_layernorm",
        {"X": X, "W": W, "Y": Y},
        {"x_num_col_dims": 2, "begin_norm_axis": 2, "epsilon": 0.5},
        {"Out": layer_norm(X @ W + Y, 1, 0, 0.5)},
        atol=1e-5,
        name="plain",
    ),
]
