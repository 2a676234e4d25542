"""Cases of dequantize_linear."""

from __future__ import annotations

import numpy as np
from oprack.testing import OpCase

from .._data import IMAGE, f32, floats

ZERO, CHANNELS = np.zeros(1, f32), floats(1, 2, 4)
BYTES = np.array([[-128, 0, 127], [1, 2, 3]], np.int8)


def case(name: str, inputs: dict, out: np.ndarray, **attrs: object) -> OpCase:
    return OpCase("dequantize_linear", inputs, attrs, {"Y": out.astype(f32)}, name=name)


CASES = [
    case("bytes", {"X": BYTES, "Scale": floats(2), "ZeroPoint": ZERO}, BYTES / 63.5, quant_axis=-1),
    case("channels", {"X": BYTES, "Scale": CHANNELS, "ZeroPoint": CHANNELS}, BYTES * CHANNELS / 127, quant_axis=1),
    case("observer", {"X": IMAGE, "Scale": floats(1), "ZeroPoint": ZERO}, IMAGE, quant_axis=-1, only_observer=True),
]
