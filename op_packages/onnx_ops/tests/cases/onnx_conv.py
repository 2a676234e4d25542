"""Cases of onnx_conv; expected numbers come from NumPy's convolve."""

from __future__ import annotations

import numpy as np
from oprack.testing import OpCase

x, w = np.arange(1.0, 7.0), np.array([1.0, -2.0, 0.5])
full = np.correlate(x, w, "full")  # 8 windows: x with two elements around it


def case(name: str, y: np.ndarray, attrs: dict, **inputs: np.ndarray) -> OpCase:
    given = {"X": x.reshape(1, 1, -1), "W": w.reshape(1, 1, -1)} | inputs
    return OpCase("onnx_conv", given, attrs, {"Y": y.reshape(1, 1, -1)}, name=name)


CASES = [
    case("valid", full[2:-2], {}),
    case("pads", full[1:-2], {"pads": [1, 0]}),
    case("same_upper", full[1:-1], {"auto_pad": "SAME_UPPER"}),
    case("strides_bias", full[2:-2:2] + 3, {"strides": [2]}, B=np.array([3.0])),
    # of an even size, the odd element is put before: windows of every second place from one before the start on
    case("same_lower", full[1:-1:2], {"auto_pad": "SAME_LOWER", "strides": [2]}),
]
