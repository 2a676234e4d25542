"""Cases of onnx_sequence_empty."""

from __future__ import annotations

from oprack.tensor import LoDTensorArray
from oprack.testing import OpCase

CASES = [OpCase("onnx_sequence_empty", {}, {"dtype": 5}, {"output": LoDTensorArray()})]
