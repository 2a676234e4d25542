"""Cases of lod_reset."""

from __future__ import annotations

import numpy as np
from oprack.tensor import LoDTensor
from oprack.testing import OpCase

LENGTHS = {"first": [0, 3, 2], "middle": [3, 0, 2], "several": [0, 0, 2, 0, 4, 0], "only": [0, 0, 0], "no sequence": []}


def lod_reset(name: str, lengths: list[int]) -> OpCase:
    """Rows, and the offsets of their new sequences as data."""
    x = np.random.default_rng(7).standard_normal((sum(lengths), 2)).astype(np.float32)
    offsets = [0, *np.cumsum(lengths, dtype=int).tolist()]
    out = LoDTensor(x, [offsets])
    return OpCase("lod_reset", {"X": x, "Y": np.array(offsets)}, outputs={"Out": out}, grads=["X"], name=name)


CASES = [lod_reset(name, lengths) for name, lengths in LENGTHS.items()]
