"""Cases of onnx_sequence_construct."""

from __future__ import annotations

import numpy as np
from oprack import LoDTensor
from oprack.tensor import LoDTensorArray
from oprack.testing import OpCase

parts = [np.arange(3.0), np.zeros((0, 2)), np.ones((2, 2))]
CASES = [
    OpCase("onnx_sequence_construct", {"inputs": parts}, {}, {"output_sequence": LoDTensorArray(map(LoDTensor, parts))})
]
