"""Cases of onnx_dropout; what is random is told by a ratio of 0 alone."""

from __future__ import annotations

import numpy as np
from oprack.testing import OpCase

x = np.linspace(-1, 1, 6, dtype="float32").reshape(2, 3)
whole = {"output": x, "mask": np.ones((2, 3), bool)}
CASES = [
    OpCase("onnx_dropout", {"data": x}, {}, whole, name="inference"),
    OpCase(
        "onnx_dropout",
        {"data": x, "ratio": np.array(0.0, "float32"), "training_mode": np.array(True)},
        {},
        whole,
        name="nothing_dropped",
    ),
]
