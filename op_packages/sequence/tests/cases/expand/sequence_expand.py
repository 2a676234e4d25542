"""Cases of sequence_expand."""

from __future__ import annotations

import numpy as np
from oprack.tensor import LoDTensor, lod_from_lengths
from oprack.testing import OpCase

from .._rows import joined, of_every_length, random, sequences, split


def expand_rows(n: list[int]) -> OpCase:
    x, y = random(len(n), 4), sequences(random(sum(n), 1), n)
    out = np.array([x[i] for i, k in enumerate(n) for _ in range(k)], np.float32).reshape(-1, 4)
    if not n:
        out = x
    return OpCase("sequence_expand", {"X": x, "Y": y}, {"ref_level": 0}, {"Out": out}, ["X"])


def expand_sequences(n: list[int]) -> OpCase:
    """Both what is repeated and how often may be nothing."""
    x, repeats = sequences(random(sum(n), 4), n), [2, 0, 1, 3, 1, 0][: len(n)]
    y = sequences(random(sum(repeats), 1), repeats)
    parts = [p for p, k in zip(split(x), repeats, strict=True) for _ in range(k)]
    out = joined(parts, x.array) if n else x
    return OpCase("sequence_expand", {"X": x, "Y": y}, {"ref_level": 0}, {"Out": out}, ["X"])


def either_level(level: int) -> OpCase:
    inner = [2, 0, 4]
    y = LoDTensor(random(6, 1), lod_from_lengths([[2, 0, 1], inner]))
    x = random(3, 2)
    out = np.repeat(x, [2, 0, 1] if level == 0 else inner, axis=0)
    return OpCase("sequence_expand", {"X": x, "Y": y}, {"ref_level": level}, {"Out": out}, ["X"], f"level {level}")


CASES = [
    *of_every_length(expand_rows),
    *of_every_length(expand_sequences),
    *(either_level(level) for level in (0, 1, -1)),
]
