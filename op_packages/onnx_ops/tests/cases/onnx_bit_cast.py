"""Cases of onnx_bit_cast of 16 bits; those of ONNX have others."""

from __future__ import annotations

import ml_dtypes
import numpy as np
from oprack.testing import OpCase

# 1.0, -2.0 and 0.0 as IEEE 754 has them: sign, exponent, fraction
half = np.array([0x3C00, 0xC000, 0], "uint16").view("int16")
brain = np.array([0x3F80, 0xC000, 0], "uint16").view("int16")
values = np.array([1.0, -2.0, 0.0])
CASES = [
    OpCase("onnx_bit_cast", {"input": values.astype("float16")}, {"to": 1}, {"output": half}, name="float16"),
    OpCase(
        "onnx_bit_cast", {"input": values.astype(ml_dtypes.bfloat16)}, {"to": 1}, {"output": brain}, name="bfloat16"
    ),
    OpCase("onnx_bit_cast", {"input": half}, {"to": 4}, {"output": values.astype("float16")}, name="int16"),
]
