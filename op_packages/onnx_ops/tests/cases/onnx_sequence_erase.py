"""Cases of onnx_sequence_erase."""

from __future__ import annotations

import numpy as np
from oprack import LoDTensor
from oprack.tensor import LoDTensorArray
from oprack.testing import OpCase

parts = [LoDTensor(np.full(n, n, "float32")) for n in (1, 2, 3)]


def case(name: str, kept: list[LoDTensor], **inputs: np.ndarray) -> OpCase:
    given = {"input_sequence": LoDTensorArray(parts)} | inputs
    return OpCase("onnx_sequence_erase", given, {}, {"output_sequence": LoDTensorArray(kept)}, name=name)


CASES = [
    case("last", parts[:2]),
    case("first", parts[1:], position=np.array(0)),
    case("from_the_end", [parts[0], parts[2]], position=np.array(-2)),
]
