"""Cases of sequence_pad."""

from __future__ import annotations

import numpy as np
from oprack.testing import OpCase

from .._rows import of_every_length, random, sequences, split


def pad(n: list[int], length: int) -> OpCase:
    x, value = sequences(random(sum(n), 3), n), random(3)
    width = max(n, default=0) if length < 0 else length
    out = np.tile(value, (len(n), width, 1))
    for i, part in enumerate(split(x)):
        out[i, : len(part)] = part
    outputs = {"Out": out, "Length": np.array(n, np.int64)}
    return OpCase("sequence_pad", {"X": x, "PadValue": value}, {"padded_length": length}, outputs, ["X"])


CASES = [*of_every_length(pad, -1), *of_every_length(pad, 6)]
