"""Cases of sequence_erase."""

from __future__ import annotations

from oprack.testing import OpCase

from .._rows import ids, joined, of_every_length, split


def erase(n: list[int]) -> OpCase:
    x = ids(n)
    parts = [p[(p[:, 0] != 1) & (p[:, 0] != 3)] for p in split(x)]
    return OpCase("sequence_erase", {"X": x}, {"tokens": [1, 3]}, {"Out": joined(parts, x.array)})


CASES = of_every_length(erase)
