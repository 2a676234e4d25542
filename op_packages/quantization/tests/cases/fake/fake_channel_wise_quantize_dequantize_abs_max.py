"""Cases of fake_channel_wise_quantize_dequantize_abs_max."""

from __future__ import annotations

import numpy as np
from oprack.testing import OpCase

from .._data import IMAGE, f32, rounded


def case(axis: int, bits: int, round_type: int, x: np.ndarray = IMAGE, name: str = "") -> OpCase:
    others = tuple(i for i in range(x.ndim) if i != axis)
    scale = np.abs(x).max(others, keepdims=True, initial=0)
    outputs = {"Out": rounded(x, scale, bits, round_type, restored=True), "OutScale": scale.reshape(-1)}
    attrs = {"quant_axis": axis, "bit_length": bits, "round_type": round_type}
    return OpCase(
        "fake_channel_wise_quantize_dequantize_abs_max",
        {"X": x},
        attrs,
        outputs,
        name=name or f"{axis}_{bits}_{round_type}",
    )


CASES = [
    case(0, 8, 0),
    case(1, 8, 1),
    case(1, 4, 0),
    case(0, 4, 1),
    case(0, 8, 1, np.zeros((3, 0), f32), "nothing"),
    case(1, 8, 1, np.array([[1, 0], [2, 0]], f32), "channel_of_zeros"),
]
