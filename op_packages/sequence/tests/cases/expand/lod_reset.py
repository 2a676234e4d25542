"""Cases of lod_reset."""

from __future__ import annotations

import numpy as np
from oprack.tensor import LoDTensor, lod_from_lengths
from oprack.testing import OpCase

from .._rows import of_every_length, random


def lod_reset(n: list[int]) -> OpCase:
    x, offsets = random(sum(n), 2), lod_from_lengths([n])[0]
    return OpCase("lod_reset", {"X": x, "Y": np.array(offsets)}, outputs={"Out": LoDTensor(x, [offsets])}, grads=["X"])


CASES = of_every_length(lod_reset)
