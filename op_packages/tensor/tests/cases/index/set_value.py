"""Cases of set_value: a value with more leading dims of size 1 than the part has, and its gradient."""

from __future__ import annotations

import numpy as np
from oprack.testing import OpCase

X = np.arange(6.0).reshape(2, 3)
VALUE = np.array([[[7.0, 8.0, 9.0]]])
CASES = [
    OpCase(
        "set_value",
        {"Input": X, "ValueTensor": VALUE},
        {"axes": [0], "starts": [0], "ends": [1], "steps": [1], "decrease_axes": [0], "dtype": 6},
        {"Out": np.stack([VALUE[0, 0], X[1]])},
        grads=["Input", "ValueTensor"],
        name="leading_ones",
    ),
]
