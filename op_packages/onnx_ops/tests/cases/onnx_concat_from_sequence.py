"""Cases of onnx_concat_from_sequence."""

from __future__ import annotations

import numpy as np
from oprack import LoDTensor
from oprack.tensor import LoDTensorArray
from oprack.testing import OpCase

x = np.arange(12.0).reshape(3, 4)
rows = LoDTensorArray([LoDTensor(r.copy()) for r in x])
halves = LoDTensorArray([LoDTensor(x[:, :1].copy()), LoDTensor(x[:, 1:].copy())])
OP = "onnx_concat_from_sequence"
CASES = [
    OpCase(OP, {"input_sequence": rows}, {"axis": 0, "new_axis": True}, {"concat_result": x}, name="stacked"),
    OpCase(OP, {"input_sequence": rows}, {"axis": -1, "new_axis": True}, {"concat_result": x.T}, name="stacked_last"),
    OpCase(OP, {"input_sequence": halves}, {"axis": 1}, {"concat_result": x}, name="joined"),
]
